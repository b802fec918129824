#!/usr/bin/env python3
"""llama.cpp's own server, from the `xllamacpp` wheel, with one model on one thread: `llama_server.py MODEL.gguf PORT [TOKENS [GRAMMAR]]`.

Prints its address when it listens and serves until it is ended. One thread, because two on a busy machine wait for
each other. GRAMMAR is a file in GBNF: the model still chooses, among what the grammar allows."""
import signal
import sys

import xllamacpp

path, port = sys.argv[1:3]
settings = xllamacpp.CommonParams()
settings.model.path = path
settings.hostnames = ["127.0.0.1"]
settings.port = int(port)
settings.n_ctx = int(sys.argv[3]) if len(sys.argv) > 3 else 2048
settings.n_parallel = 1
settings.cpuparams.n_threads = 1
if len(sys.argv) > 4:
    from xllamacpp.xllamacpp import CommonGrammar, common_grammar_type

    with open(sys.argv[4]) as file:
        settings.sampling.grammar = CommonGrammar(common_grammar_type.COMMON_GRAMMAR_TYPE_USER, file.read())
server = xllamacpp.Server(settings)
print(server.listening_address, flush=True)
signal.pause()
