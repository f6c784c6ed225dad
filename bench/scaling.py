#!/usr/bin/env python3
"""Predicts time and memory of a training step of a GPT on a mesh of GPUs, and prints the tables of docs/SCALING.md, which explains the model.

scaling.py                 prints the tables
scaling.py --check FILE    says which tables of FILE are not those that it prints
scaling.py --write FILE    puts them into FILE, between lines `<!-- table NAME -->` and `<!-- end -->`

exit: 0 done, 1 FILE has other tables, 2 usage. Times are in microseconds where no name says otherwise, bandwidths in bytes per microsecond.
"""

import collections
import re
import sys

# Measured on H200 (bench/CUDA.md, bench/MANY.md), 1,024 tokens a row, bf16.
STEP_MS = {("gpt2-124m", 4): 8.53, ("gpt2-124m", 32): 54.4, ("gpt2-1558m", 4): 90.8}  # one GPU
UPDATE_BANDWIDTH = 4.001e6  # of AdamW
REPLICATED = 2.7 / (53.5 - 0.93)  # norms, of all kernels of a step but AdamW: work that every GPU of a tensor group does
ALL_REDUCE = {  # bytes: (Ring and Simple, Ring and LL128), two GPUs
    64 << 10: (20.7, 14.7), 512 << 10: (21.0, 16.2), 4 << 20: (33.1, 30.8), 16 << 20: (74.1, 80.2), 64 << 20: (249.5, 272.2),
    256 << 20: (893.1, 941.8)}  # fmt: skip
REDUCE_SCATTER = ALL_GATHER = 256 << 20
REDUCE_SCATTER_US, ALL_GATHER_US = 561, 548
# (what, model, rows of a data index, data, tensor, zero, MiB of a bucket, protocol of the tensor group, measured ms)
MEASURED_STEPS = [
    ("124M", "gpt2-124m", 32, 2, 1, 1, 50, "Simple", 57.3),
    ("124M", "gpt2-124m", 32, 2, 1, 1, 300, "Simple", 56.9),
    ("124M", "gpt2-124m", 32, 2, 1, 0, 1000, "Simple", 57.3),
    ("124M", "gpt2-124m", 4, 2, 1, 1, 50, "Simple", 9.35),
    ("124M", "gpt2-124m", 4, 2, 1, 1, 300, "Simple", 9.39),
    ("124M", "gpt2-124m", 4, 2, 1, 0, 1000, "Simple", 9.94),
    ("1558M", "gpt2-1558m", 4, 2, 1, 1, 25, "Simple", 103.3),
    ("124M", "gpt2-124m", 4, 1, 2, 0, 25, "Simple", 7.05),
    ("124M", "gpt2-124m", 4, 1, 2, 0, 25, "LL128", 6.89),
    ("1558M", "gpt2-1558m", 4, 1, 2, 0, 25, "Simple", 62.7),
    ("1558M", "gpt2-1558m", 4, 1, 2, 0, 25, "LL128", 62.9),
]

# The latency of all_reduce with two ranks and the bandwidth are fitted to the columns of ALL_REDUCE. A hop through NVLink and one from host to host
# take what NCCL's own model of its times says (src/graph/tuning.cc).
Protocol = collections.namedtuple("Protocol", "latency bandwidth hop network_hop")
PROTOCOLS = {"Simple": Protocol(20.0, 305e3, 3.4, 9.6), "LL128": Protocol(15.0, 270e3, 1.9, 4.0)}
HALF_BANDWIDTH = 250e3  # of reduce_scatter and all_gather with Simple, fitted to the two measurements
TREE = Protocol(4.4, 0, 0.52, 5.0)  # of a few bytes, LL, by NCCL's model: latency without hops

# Assumptions.
GPUS_OF_HOST = 8
NETWORK = 320e3  # of a host, each way: eight cards of 400 Gbit/s at 80 %
GPU_GIB = 120  # what a plan may take of the 131 of an H200

# What the planner plans for temporaries, bytes at 4 and at 32 rows of 1,024 tokens; other numbers of rows lie on the line through them.
TEMPORARIES = {("gpt2-124m", 1): (1873903872, 13368623360), ("gpt2-124m", 2): (982979840, 7856489728),
               ("gpt2-124m", 4): (653137152, 5217748224), ("gpt2-1558m", 1): (11023499520, 84807565568),
               ("gpt2-1558m", 5): (4156888320, 33247757568)}  # fmt: skip

Model = collections.namedtuple("Model", "layers heads width vocab context")
MODELS = {"gpt2-124m": Model(12, 12, 768, 50257, 1024), "gpt2-1558m": Model(48, 25, 1600, 50257, 1024)}
LENGTH, MIB, GIB = 1024, 1 << 20, 1 << 30
ROW_MULTIPLE, ALIGNMENT = 64, 128  # of a GPU's matrices, in elements; of parameters (plan/parameters.hpp)

Bucket = collections.namedtuple("Bucket", "elements decay")
Mesh = collections.namedtuple("Mesh", "data tensor zero bucket_mib")
Step = collections.namedtuple("Step", "work fixed update tensor hidden exposed gather")


def parameters(m, tensor):
    """(elements on a device, whether it decays, whether a tensor group divides it) of each parameter, in the order of paths."""
    c, t = m.width, tensor
    share = -(-m.vocab // t)
    rows = m.vocab if t == 1 else -(-share // ROW_MULTIPLE) * ROW_MULTIPLE
    block = [(3 * c // t, False, True), (3 * c * c // t, True, True), (c, False, False), (c * c // t, True, True)]  # c_attn, attn.c_proj
    block += [(c, False, False)] * 4  # ln_1, ln_2
    block += [(4 * c // t, False, True), (4 * c * c // t, True, True), (c, False, False), (4 * c * c // t, True, True)]  # c_fc, mlp.c_proj
    return block * m.layers + [(c, False, False)] * 2 + [(m.context * c, True, False), (rows * c, True, True)]  # ln_f, wpe, wte


def up(x, unit):
    return -(-x // unit) * unit


def buckets(m, mesh):
    """The gradients that travel together: the rule of plan/parameters.hpp."""
    full = mesh.bucket_mib * MIB // 4 if mesh.data > 1 else 1 << 62
    unit = ALIGNMENT * mesh.data
    found = []
    for decay in (True, False):
        for divided in (True, False) if mesh.tensor > 1 else (None,):
            open_ = 0
            for elements, decays, divides in parameters(m, mesh.tensor):
                if decays != decay or divided not in (None, divides):
                    continue
                open_ += up(elements, ALIGNMENT)
                if open_ >= full:
                    found.append(Bucket(up(open_, unit), decay))
                    open_ = 0
            if open_:
                found.append(Bucket(up(open_, unit), decay))
    return found


def elements(m, mesh):
    return sum(b.elements for b in buckets(m, mesh))


def activations(m, rows):
    """Collectives of a tensor group in one pass over a micro-batch: how many all_reduce, the bytes of each, and those of the one all_gather."""
    return 4 * m.layers + 2, 2 * rows * LENGTH * m.width, 3 * 4 * rows * LENGTH


def planned_bytes(name, rows, mesh):
    """The arena of a device: ids, results, weights, masters, gradients, moments, temporaries."""
    m = MODELS[name]
    few, many = TEMPORARIES[name, mesh.tensor]
    n = elements(m, mesh)
    own = n // mesh.data if mesh.zero else n
    temporaries = few + (many - few) * (rows - 4) // 28
    return 2 * 4 * rows * LENGTH + 512 + 2 * n + 4 * n + 12 * own + temporaries


def ring(collective, size, ranks, hosts, protocol="Simple", tensor=1):
    """The time of a collective around a ring of `ranks` on `hosts`; `size`: the whole buffer. `tensor` rings share a host's network."""
    if ranks == 1:
        return 0.0
    p = PROTOCOLS[protocol]
    passes = 2 if collective == "all_reduce" else 1
    bandwidth = p.bandwidth if collective == "all_reduce" else HALF_BANDWIDTH
    if hosts > 1:
        bandwidth = min(bandwidth, NETWORK / tensor)
    steps, far = passes * (ranks - 1), passes * (hosts - 1)
    latency = p.latency - 2 * p.hop + (steps - far) * p.hop + far * p.network_hop
    return latency + passes * (ranks - 1) / ranks * size / bandwidth


def scalar(ranks, hosts):
    """The time of an all_reduce of one number: NCCL chooses a tree where several hosts take part, and the ring of the measurements on one."""
    if hosts == 1:
        return ring("all_reduce", 4, ranks, hosts)
    return TREE.latency + 2 * ((ranks / hosts - 1) * TREE.hop + (hosts - 1).bit_length() * TREE.network_hop)


def rates(name):
    """Microseconds of a row, and of a step whatever its rows (the time between launches, and kernels too small for the GPU)."""
    m = MODELS["gpt2-124m"]
    row = 1e3 * (STEP_MS["gpt2-124m", 32] - STEP_MS["gpt2-124m", 4]) / 28
    layer = (1e3 * STEP_MS["gpt2-124m", 4] - update(m, Mesh(1, 1, 0, 25)) - 4 * row) / m.layers
    if name != "gpt2-124m":
        m = MODELS[name]
        row = (1e3 * STEP_MS[name, 4] - update(m, Mesh(1, 1, 0, 25)) - layer * m.layers) / 4
    return row, layer * m.layers


def flops_of_row(m):
    """Operations of products and of causal attention, forward and backward."""
    matrices = 12 * m.layers * m.width**2 + m.vocab * m.width
    return LENGTH * (6 * matrices + 7 * m.layers * LENGTH * m.width)


def update(m, mesh):
    """AdamW reads and writes master and moments, reads the gradient and writes the weight: 30 bytes for each element."""
    return 30 * elements(m, mesh) / (mesh.data if mesh.zero else 1) / UPDATE_BANDWIDTH


def step(name, rows, mesh, protocol="LL128", micro=1):
    """The parts of a step of `micro` micro-batches of `rows` rows on each data index."""
    m = MODELS[name]
    row, fixed = rates(name)
    hosts = max(1, mesh.data * mesh.tensor // GPUS_OF_HOST)
    work = row * rows * ((1 - REPLICATED) / mesh.tensor + REPLICATED)
    count, size, gathered = activations(m, rows)
    inside = count * ring("all_reduce", size, mesh.tensor, 1, protocol) + ring("all_gather", gathered * mesh.tensor, mesh.tensor, 1, protocol)
    reduce = "reduce_scatter" if mesh.zero else "all_reduce"
    parts = buckets(m, mesh)
    times = [ring(reduce, 4 * b.elements, mesh.data, hosts, tensor=mesh.tensor) for b in parts]
    last = times[max(i for i, b in enumerate(parts) if b.decay)]  # the token table, whose gradient is complete only at the end
    hidden = min(sum(times) - last, 2 / 3 * (work + inside))
    scalars = 2 * scalar(mesh.data, hosts) if mesh.data > 1 else 0.0  # the loss and the norm
    gather = sum(ring("all_gather", 2 * b.elements, mesh.data, hosts, tensor=mesh.tensor) for b in parts) if mesh.zero else 0
    return Step(micro * work, micro * fixed, update(m, mesh), micro * inside, hidden, sum(times) - hidden + scalars, gather)


def serial(s):
    """The time of a step none of whose exchanges are hidden by work."""
    return sum(s)


def overlapped(s):
    """The time of a step where all buckets but the last travel during the backward pass without slowing it."""
    return sum(s) - s.hidden


def tokens(name, rows, mesh, s, time=serial):
    return rows * LENGTH * mesh.data / time(s) * 1e6


def best_bucket(name, rows, data, tensor, micro=1):
    """The mesh whose bucket gives the shortest serial time."""
    zero = 1 if data > 1 else 0
    return min((Mesh(data, tensor, zero, mib) for mib in (25, 100, 400, 1600)), key=lambda x: serial(step(name, rows, x, micro=micro)))


def divisors(name):
    """The sizes of tensor groups on a host that are known here."""
    return [t for (n, t) in TEMPORARIES if n == name and GPUS_OF_HOST % t == 0]


def fitting_micro(name, rows, mesh):
    """The fewest micro-batches, of equal rows, with which the plan fits; 0: one row does not fit."""
    return next((n for n in range(1, rows + 1) if rows % n == 0 and planned_bytes(name, rows // n, mesh) <= GPU_GIB * GIB), 0)


def choices(name, gpus, rows):
    """(mesh, micro-batches, step) for each mesh on which `rows` rows of a step fit."""
    for tensor in divisors(name):
        data = gpus // tensor
        if rows % data != 0:
            continue
        micro = fitting_micro(name, rows // data, Mesh(data, tensor, 1, 25))
        if micro:
            mesh = best_bucket(name, rows // data // micro, data, tensor, micro)
            yield mesh, micro, step(name, rows // data // micro, mesh, micro=micro)


def table(header, rows):
    return "\n".join("| " + " | ".join(r) + " |" for r in [header, ["---"] * len(header), *rows])


def percent(x, y):
    return f"{100 * (x / y - 1):+.0f} %"


def size_text(n):
    return f"{n // MIB} MiB" if n >= MIB else f"{n >> 10} KiB"


def table_collectives():
    rows = []
    for size, measured in ALL_REDUCE.items():
        row = [f"all_reduce, {size_text(size)}"]
        for protocol, us in zip(("Simple", "LL128"), measured):
            t = ring("all_reduce", size, 2, 1, protocol)
            row += [f"{t:.1f}", f"{us}", percent(t, us)]
        rows.append(row)
    for name, size, us in (("reduce_scatter", REDUCE_SCATTER, REDUCE_SCATTER_US), ("all_gather", ALL_GATHER, ALL_GATHER_US)):
        t = ring(name, size, 2, 1)
        rows.append([f"{name}, {size_text(size)}", f"{t:.1f}", f"{us}", percent(t, us), "", "", ""])
    return table(["two GPUs, us", "Simple, predicted", "measured", "error", "LL128, predicted", "measured", "error"], rows)


def table_rates():
    rows = []
    for name, m in MODELS.items():
        row, fixed = rates(name)
        alone = Mesh(1, 1, 0, 25)
        rows.append([name, f"{row / 1e3:.3f}", f"{flops_of_row(m) / row / 1e6:.0f}", f"{fixed / 1e3:.2f}", f"{update(m, alone) / 1e3:.2f}"])
    return table(["one GPU", "ms of a row of 1,024 tokens", "TFLOP/s", "fixed ms of a step", "ms of AdamW"], rows)


def table_steps():
    rows = []
    small, large = MODELS["gpt2-124m"], MODELS["gpt2-1558m"]
    at_rate = rates("gpt2-124m")[0] * flops_of_row(large) / flops_of_row(small)
    alone = (4 * at_rate + rates("gpt2-1558m")[1] + update(large, Mesh(1, 1, 0, 25))) / 1e3
    measured = STEP_MS["gpt2-1558m", 4]
    rows.append(["1558M, 4 rows, one GPU, at the TFLOP/s of 124M", f"{alone:.1f}", "", f"{measured}", percent(alone, measured)])
    for what, name, batch, data, tensor, zero, mib, protocol, ms in MEASURED_STEPS:
        s = step(name, batch, Mesh(data, tensor, zero, mib), protocol)
        label = f"{what}, {batch} rows, data {data}" + (f", ZeRO-1, buckets of {mib} MiB" if zero else ", one bucket")
        if tensor > 1:
            label = f"{what}, {batch} rows, tensor {tensor}, {protocol}"
        low = f"{overlapped(s) / 1e3:.2f}" if data > 1 else ""
        rows.append([label, f"{serial(s) / 1e3:.2f}", low, f"{ms}", percent(serial(s) / 1e3, ms)])
    header = ["two GPUs unless it says one", "predicted ms, nothing hidden", "all hidden that can be", "measured", "error of the former"]
    return table(header, rows)


PLANS = [("gpt2-124m", 4, Mesh(1, 2, 0, 25)), ("gpt2-124m", 4, Mesh(2, 1, 0, 25)), ("gpt2-124m", 4, Mesh(2, 1, 1, 25)),
         ("gpt2-124m", 32, Mesh(8, 1, 1, 100)), ("gpt2-124m", 32, Mesh(4, 2, 1, 25)), ("gpt2-124m", 4, Mesh(2, 4, 1, 25)),
         ("gpt2-124m", 32, Mesh(1024, 1, 1, 1600)), ("gpt2-1558m", 4, Mesh(2, 1, 1, 25)), ("gpt2-1558m", 32, Mesh(64, 1, 1, 400)),
         ("gpt2-1558m", 4, Mesh(1, 5, 0, 25))]  # fmt: skip


def table_plans():
    """What tests/dist/scaling_test.cpp compares with plans: collectives and bytes."""
    rows = []
    for name, batch, mesh in PLANS:
        m = MODELS[name]
        count, size, gathered = activations(m, batch)
        parts = buckets(m, mesh)
        grads = 4 * sum(b.elements for b in parts)
        row = [name, str(batch), str(mesh.data), str(mesh.tensor), str(mesh.zero), str(mesh.bucket_mib)]
        row += [str(count), str(count * size), str(gathered)] if mesh.tensor > 1 else ["0", "0", "0"]
        row += [str(len(parts)), str(grads), str(grads // 2 if mesh.zero else 0)] if mesh.data > 1 else ["0", "0", "0"]
        rows.append(row + [str(planned_bytes(name, batch, mesh))])
    header = ["model", "rows", "data", "tensor", "zero", "MiB of a bucket", "all_reduce of activations", "bytes", "all_gather of a loss",
              "exchanges of gradients", "bytes", "all_gather of weights, bytes", "bytes planned"]  # fmt: skip
    return table(header, rows)


def mesh_text(mesh):
    return f"{mesh.data} x {mesh.tensor}" + (", ZeRO-1" if mesh.zero else "")


def parts_of(s):
    return [f"{x / 1e3:.1f}" for x in (s.work + s.fixed, s.update, s.tensor, s.hidden + s.exposed, s.gather)]


def table_weak():
    """A step with as many rows on each GPU."""
    rows = []
    for name, batch in (("gpt2-124m", 32), ("gpt2-124m", 4), ("gpt2-1558m", 4)):
        alone = STEP_MS[name, batch]
        for gpus in (8, 64, 1024):
            for tensor in divisors(name) if gpus == 8 else (1,):
                mesh = best_bucket(name, batch * tensor, gpus // tensor, tensor)
                s = step(name, batch * tensor, mesh)
                one = batch * LENGTH / alone * 1e3 * gpus
                both = [f"{100 * tokens(name, batch * tensor, mesh, s, f) / one:.0f} %" for f in (serial, overlapped)]
                memory = f"{planned_bytes(name, batch * tensor, mesh) / GIB:.1f}"
                mib = str(mesh.bucket_mib) if mesh.data > 1 else ""
                rows.append([f"{name}, {batch} rows a GPU", str(gpus), mesh_text(mesh), mib, *parts_of(s), *both, memory])
    header = ["model", "GPUs", "data x tensor", "bucket, MiB", "work, ms", "AdamW", "all_reduce of activations", "gradients",
              "all_gather of weights", "of linear, nothing hidden", "all hidden that can be", "GiB of a GPU"]  # fmt: skip
    return table(header, rows)


def table_strong():
    """A step of 512 rows, half a million tokens, on every mesh, and which is fastest."""
    rows = []
    for name in MODELS:
        for gpus in (8, 64, 128, 512, 1024):
            found = list(choices(name, gpus, 512))
            best = min((serial(s) for _, _, s in found), default=0)
            for mesh, micro, s in found:
                batch = 512 // mesh.data // micro
                memory = f"{planned_bytes(name, batch, mesh) / GIB:.1f}"
                mark = "fastest" if serial(s) == best else percent(serial(s), best)
                rows.append([name, str(gpus), mesh_text(mesh), f"{micro} x {batch}", *parts_of(s), f"{serial(s) / 1e3:.1f}", mark, memory])
            if not found:
                rows.append([name, str(gpus), "none: fewer rows than replicas", *[""] * 9])
    header = ["model", "GPUs", "data x tensor", "micro-batches x rows", "work, ms", "AdamW", "all_reduce of activations", "gradients",
              "all_gather of weights", "step, nothing hidden", "against the fastest", "GiB of a GPU"]  # fmt: skip
    return table(header, rows)


def table_network():
    """How much the figures depend on the assumed network: 64 GPUs."""
    global NETWORK
    kept, rows = NETWORK, []
    for gigabytes in (320, 160, 80, 40, 10):
        NETWORK = gigabytes * 1e3
        row = [str(gigabytes)]
        for name, batch in (("gpt2-124m", 32), ("gpt2-124m", 4), ("gpt2-1558m", 4)):
            mesh = best_bucket(name, batch, 64, 1)
            one = batch * LENGTH / STEP_MS[name, batch] * 1e3 * 64
            s = step(name, batch, mesh)
            row.append(" to ".join(f"{100 * tokens(name, batch, mesh, s, f) / one:.0f}" for f in (serial, overlapped)) + " %")
        rows.append(row)
    NETWORK = kept
    return table(["GB/s of a host", "124M, 32 rows a GPU, of linear", "124M, 4 rows", "1558M, 4 rows"], rows)


TABLES = {"collectives": table_collectives, "rates": table_rates, "steps": table_steps, "plans": table_plans, "weak": table_weak,
          "strong": table_strong, "network": table_network}  # fmt: skip
PLACE = re.compile(r"(<!-- table (\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def main(arguments):
    if not arguments:
        print("\n\n".join(f"{name}\n\n{make()}" for name, make in TABLES.items()))
        return 0
    if len(arguments) != 2 or arguments[0] not in ("--check", "--write"):
        print(f"scaling.py: '{' '.join(arguments)}' is no command. fix: scaling.py [--check FILE | --write FILE]", file=sys.stderr)
        return 2
    with open(arguments[1], encoding="utf-8") as file:
        text = file.read()
    found = {name: old for _, name, old, _ in PLACE.findall(text)}
    wrong = [name for name in TABLES if name not in found] + [name for name in found if name not in TABLES]
    if arguments[0] == "--write" and not wrong:
        with open(arguments[1], "w", encoding="utf-8") as file:
            file.write(PLACE.sub(lambda x: x[1] + TABLES[x[2]]() + "\n" + x[4], text))
        return 0
    wrong += [name for name, old in found.items() if name in TABLES and old != TABLES[name]() + "\n"]
    for name in wrong:
        print(f"{arguments[1]}: table {name} is not what scaling.py prints. fix: bench/scaling.py --write {arguments[1]}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
