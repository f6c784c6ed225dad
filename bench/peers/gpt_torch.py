"""A GPT training step in eager PyTorch at isotope's named sizes, for comparison with `isotope-train`.

step = forward, mean cross-entropy, backward, global-norm clip at 1, AdamW (fused), gradients dropped.
The decoder is that of GPT-2: pre-norm blocks, biases everywhere, GELU in its tanh form, learned positions, head tied to the token table, no dropout.
Tokens are random and new in each step; drawing them is not timed. Random tokens take the same time as text, since no kernel depends on their values.

Output, JSON lines: {"event":"start",...}, {"event":"step","step","loss","grad_norm","ms"} per step from 1, {"event":"done",...}.
Lines are printed after the last step, so that output takes no time in steps.
"""

import argparse
import json
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

# vocab counts the rows of the token table; ids are drawn below `tokens`. GPT-2's 50257 rows are padded to a multiple of 64, as its trainers do.
SIZES = {
    "char-gpt-cpu": dict(layers=4, heads=4, width=128, positions=64, batch=12, seq=64, vocab=65, tokens=65),
    "gpt2-124m": dict(layers=12, heads=12, width=768, positions=1024, batch=4, seq=64, vocab=50304, tokens=50257),
}


class Block(nn.Module):
    """x + proj(attention(norm(x))), then x + down(gelu(up(norm(x)))); x is (B,S,C)."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm_1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.norm_2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        batch, seq, width = x.shape
        split = (batch, seq, self.heads, width // self.heads)
        q, k, v = (part.view(split).transpose(1, 2) for part in self.qkv(self.norm_1(x)).split(width, dim=2))  # (B,H,S,D)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(attended.transpose(1, 2).reshape(batch, seq, width))
        return x + self.down(F.gelu(self.up(self.norm_2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, layers, heads, width, positions, vocab):
        super().__init__()
        self.token = nn.Embedding(vocab, width)
        self.position = nn.Embedding(positions, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        for name, weight in self.named_parameters():
            if weight.dim() >= 2:
                residual = name.endswith(("proj.weight", "down.weight"))
                nn.init.normal_(weight, 0.0, 0.02 / (2 * layers) ** 0.5 if residual else 0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(weight)

    def forward(self, tokens, targets):
        x = self.token(tokens) + self.position.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.norm(x), self.token.weight)
        return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


def adamw(model, lr):
    decayed = [p for p in model.parameters() if p.dim() >= 2]
    plain = [p for p in model.parameters() if p.dim() < 2]
    groups = [dict(params=decayed, weight_decay=0.1), dict(params=plain, weight_decay=0.0)]
    return torch.optim.AdamW(groups, lr=lr, betas=(0.9, 0.99), eps=1e-8, fused=True)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=SIZES, default="char-gpt-cpu")
    parser.add_argument("--precision", choices=("f32", "bf16"), default="f32", help="bf16 is autocast over f32 weights")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--skip", type=int, default=50, help="first steps left out of the medians of the done line")
    parser.add_argument("--threads", type=int, default=0, help="0: torch's own choice")
    parser.add_argument("--batch", type=int, default=0, help="0: the size's own")
    parser.add_argument("--seq", type=int, default=0, help="0: the size's own")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", default="-", help="file for the lines; - is standard output")
    args = parser.parse_args()
    if not 0 <= args.skip < args.steps:
        parser.error(f"--skip {args.skip} leaves nothing of --steps {args.steps}. fix: more steps")
    return args


def main():
    args = arguments()
    size = dict(SIZES[args.size])
    size["batch"] = args.batch or size["batch"]
    size["seq"] = args.seq or size["seq"]
    if size["seq"] > size["positions"]:
        sys.exit(f"gpt_torch: --seq {size['seq']} exceeds the {size['positions']} positions of {args.size}. fix: a shorter --seq")
    if args.threads:
        torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)

    model = Gpt(size["layers"], size["heads"], size["width"], size["positions"], size["vocab"])
    optimizer = adamw(model, lr=1e-3)
    shape = (size["batch"], size["seq"] + 1)
    lines = [dict(event="start", peer="pytorch", version=torch.__version__, size=args.size, precision=args.precision, batch=size["batch"], seq=size["seq"],
                  params=sum(p.numel() for p in model.parameters()), threads=torch.get_num_threads(), seed=args.seed)]
    times = []
    for step in range(1, args.steps + 1):
        drawn = torch.randint(0, size["tokens"], shape)
        tokens, targets = drawn[:, :-1].contiguous(), drawn[:, 1:].contiguous()
        begin = time.perf_counter()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=args.precision == "bf16"):
            loss = model(tokens, targets)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        ms = (time.perf_counter() - begin) * 1e3
        times.append(ms)
        lines.append(dict(event="step", step=step, loss=round(loss.item(), 5), grad_norm=round(norm.item(), 5), ms=round(ms, 4)))

    kept = times[args.skip :]
    lines.append(dict(event="done", steps=args.steps, first_ms=round(times[0], 3), median_ms=round(statistics.median(kept), 4), best_ms=round(min(kept), 4)))
    text = "".join(json.dumps(line) + "\n" for line in lines)
    if args.json == "-":
        sys.stdout.write(text)
    else:
        with open(args.json, "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main()
