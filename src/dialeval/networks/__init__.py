"""The networks themselves: BERT, Llama, prefix trees, low-rank adapters, an LSTM."""
