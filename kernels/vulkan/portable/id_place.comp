#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_ballot : require
// Moves the pairs of a block to their places in the order by one digit. A place is the number of smaller digits everywhere, plus that of equal digits
// in earlier blocks, in earlier subgroups of the block, and earlier in the subgroup, which ballots give. Every block adds up the counts of all blocks
// itself: reading a few kilobytes from the caches replaces a dispatch with its barrier.
#include "access.glsl"
#include "rows/id_pairs.glsl"

layout(push_constant, scalar) uniform push {
  uint64_t from;    // (n) ids, or pairs
  uint64_t counts;  // (blocks, DIGITS)
  uint64_t to;      // (n) pairs
  uint n, V, shift, blocks;
};

const uint SUBGROUPS = WG / SUBGROUP;
shared uint totals[DIGITS];              // of each digit, over all blocks
shared uint places[SUBGROUPS * DIGITS];  // the next place of each digit of each subgroup

// Returns the invocations of the subgroup that have this one's digit.
uvec4 alike(uint digit, bool there) {
  uvec4 same = subgroupBallot(there);
  for (uint b = 0; b < DIGIT_BITS; ++b) {
    const bool set = ((digit >> b) & 1) == 1;
    const uvec4 votes = subgroupBallot(set);
    same &= set ? votes : ~votes;
  }
  return same;
}

void main() {
  const uint lane = gl_LocalInvocationID.x, block = gl_WorkGroupID.x, own = gl_SubgroupID * DIGITS;
  // A subgroup has ITEMS runs of SUBGROUP pairs, one after another.
  const uint start = block * ITEMS * WG + gl_SubgroupID * ITEMS * SUBGROUP + gl_SubgroupInvocationID;
  uvec2 pairs[ITEMS];
  [[unroll]] for (uint k = 0; k < ITEMS; ++k) {
    const uint i = start + k * SUBGROUP;
    pairs[k] = i < n ? pair_at(from, i, V) : uvec2(0);
  }
  const uint d = lane % DIGITS;  // invocations past DIGITS repeat the work of others and store nothing, so that workgroups stay whole
  uint before = 0, all = 0;
  for (uint b = 0; b < blocks; ++b) {
    const uint c = u32_ref(counts).at[b * DIGITS + d];
    before += b < block ? c : 0;
    all += c;
  }
  if (lane < DIGITS) totals[d] = all;
  for (uint s = 0; s < SUBGROUPS; ++s)
    if (lane < DIGITS) places[s * DIGITS + d] = s == 0 ? before : 0;
  barrier();
  // Each subgroup counts its digits for the next subgroup.
  [[unroll]] for (uint k = 0; k < ITEMS; ++k)
    if (start + k * SUBGROUP < n && gl_SubgroupID + 1 < SUBGROUPS) atomicAdd(places[own + DIGITS + digit_of(pairs[k], shift)], 1);
  barrier();
  uint sum = 0;
  for (uint e = 0; e < DIGITS; ++e) sum += e < d ? totals[e] : 0;
  for (uint s = 0; s < SUBGROUPS; ++s) {
    sum += places[s * DIGITS + d];
    if (lane < DIGITS) places[s * DIGITS + d] = sum;
  }
  barrier();
  [[unroll]] for (uint k = 0; k < ITEMS; ++k) {
    const bool there = start + k * SUBGROUP < n;
    const uint digit = digit_of(pairs[k], shift);
    const uvec4 same = alike(digit, there);
    const uint rank = subgroupBallotExclusiveBitCount(same), place = there ? places[own + digit] : 0;
    subgroupMemoryBarrierShared();
    subgroupBarrier();
    if (there && rank == 0) places[own + digit] = place + subgroupBallotBitCount(same);
    subgroupMemoryBarrierShared();
    subgroupBarrier();
    if (there) u32x2_ref(to).at[place + rank] = pairs[k];
  }
}
