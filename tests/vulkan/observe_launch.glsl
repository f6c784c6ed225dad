// Every kernel of launch_size_test.cpp calls this function before its own main. Workgroup 0 of a dispatch counts the dispatch and its own invocations.
// Two specialization constants are the address of the counters.
layout(constant_id = 1001) const uint COUNTS_LOW = 0;
layout(constant_id = 1002) const uint COUNTS_HIGH = 0;

const uint COUNTED_SIZES = 2048;  // (2, COUNTED_SIZES) counters: dispatches by gl_WorkGroupSize, then their invocations in workgroup 0

void observe_launch() {
  if (gl_WorkGroupID != uvec3(0)) return;
  u32_ref counts = u32_ref(packUint2x32(uvec2(COUNTS_LOW, COUNTS_HIGH)));
  const uint size = gl_WorkGroupSize.x * gl_WorkGroupSize.y * gl_WorkGroupSize.z;
  if (gl_LocalInvocationIndex == 0) atomicAdd(counts.at[size], 1u);
  atomicAdd(counts.at[COUNTED_SIZES + size], 1u);
}
