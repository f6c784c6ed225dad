#version 460
#extension GL_GOOGLE_include_directive : require
// variant one: -DBODY_MICROS=1
// variant few: -DBODY_MICROS=4
// variant many: -DBODY_MICROS=16
// A step that is only a fused body, by the interpreter; one element per invocation. Bound by bytes, or by the formulas.
#include "access.glsl"
#define BODY_FIRST_ID 2
#include "body/body.glsl"

layout(push_constant, scalar) uniform push {
  uint64_t body;   // addresses: 8 operands, then the outputs
  uint elements;   // of each output
};

void main() {
  const uint i = item_index();
  if (i >= elements) return;
  body_run(body, i, 0.0);
}
