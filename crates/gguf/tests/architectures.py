"""Writes a small GGUF file of each architecture that the Python package `gguf` knows, with all the tensors that it names for
it, two layers, and no data; for tests/architectures.rs, which says what is made of them.

    architectures.py kinds        prints a line for each type of tensor, tab-separated:
        NUMBER NAME ELEMENTS-OF-A-BLOCK BYTES-OF-A-BLOCK
    architectures.py DIRECTORY    writes DIRECTORY/NAME.gguf and prints a line for each:
        NAME TENSORS PADDED-BYTES
"""

import pathlib
import sys

import gguf
import numpy

LAYERS, EMBD, FFN, HEADS, KV_HEADS, VOCAB, EXPERTS, USED = 2, 256, 512, 4, 2, 320, 8, 2
# Tensors that files name without ".weight".
BARE = ("ssm_a", "ssm_d", "time_mix_first", "time_mix_lerp_x", "time_mix_w0", "time_mix_k_k")


def shape(name):
    """Dimensions that such a tensor might have, the length of a row last, as numpy has it."""
    role = name.split(".")[-1] if not name.endswith(".output") else "output"
    if role in ("token_embd", "output", "per_layer_token_embd"):
        return (VOCAB, EMBD)
    if role == "position_embd":
        return (64, EMBD)
    if role.endswith(("_exps", "_chexps")) and "norm" not in role:
        return (EXPERTS, EMBD, FFN) if "down" in role else (EXPERTS, FFN, EMBD)
    if role == "ffn_gate_inp":
        return (EXPERTS, EMBD)
    if "norm" in role or role in BARE or role in ("rope_freqs", "attn_sinks", "exp_probs_b"):
        return (EMBD,)
    if role.startswith("ffn_down"):
        return (EMBD, FFN)
    if role.startswith("ffn_"):
        return (FFN, EMBD)
    return (EMBD, EMBD)


def names(arch):
    for tensor in gguf.MODEL_TENSORS[arch]:
        pattern = gguf.TENSOR_NAMES[tensor]
        for layer in range(LAYERS if "{bid}" in pattern else 1):
            yield pattern.format(bid=layer, xid=0)


def write(arch, path):
    name = gguf.MODEL_ARCH_NAMES[arch]
    writer = gguf.GGUFWriter(path, name)
    writer.add_name(f"made-up {name}")
    writer.add_context_length(2048)
    writer.add_embedding_length(EMBD)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FFN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv([KV_HEADS] * LAYERS)
    writer.add_layer_norm_rms_eps(1e-5)
    all_names = list(dict.fromkeys(names(arch)))
    if any("_exps" in one for one in all_names):
        writer.add_expert_count(EXPERTS)
        writer.add_expert_used_count(USED)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list([f"token {number}" for number in range(VOCAB)])
    writer.add_token_scores([0.0] * VOCAB)
    total = 0
    # Backwards, so that the order of the file tells nothing.
    for one in reversed(all_names):
        dims = shape(one)
        kind = gguf.GGMLQuantizationType.Q4_K if len(dims) > 1 else gguf.GGMLQuantizationType.F32
        elements = 1
        for dim in dims:
            elements *= dim
        block, size = gguf.GGML_QUANT_SIZES[kind]
        count = elements // block * size
        total += (count + 31) // 32 * 32
        suffix = "" if one.split(".")[-1] in BARE else ".weight"
        stored = (*dims[:-1], dims[-1] // block * size) if block > 1 else dims
        dtype = numpy.dtype(numpy.uint8 if block > 1 else numpy.float32)
        writer.add_tensor_info(one + suffix, stored, dtype, count, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    writer.close()
    print(name, len(all_names), total, sep="\t")


def main():
    if sys.argv[1] == "kinds":
        for kind, (block, size) in gguf.GGML_QUANT_SIZES.items():
            print(int(kind), kind.name, block, size, sep="\t")
        return
    directory = pathlib.Path(sys.argv[1])
    for arch in gguf.MODEL_ARCH:
        write(arch, directory / f"{gguf.MODEL_ARCH_NAMES[arch]}.gguf")


main()
