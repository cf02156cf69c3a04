"""Chat servers over HTTP, asked with patience, whether a chatbot or a judge is behind them."""
