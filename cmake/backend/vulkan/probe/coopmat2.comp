#version 460
#extension GL_KHR_cooperative_matrix : require
#extension GL_NV_cooperative_matrix2 : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_EXT_bfloat16 : require
layout(local_size_x = 128) in;
void main() { coopmat<bfloat16_t, gl_ScopeWorkgroup, 64, 64, gl_MatrixUseA> a = coopmat<bfloat16_t, gl_ScopeWorkgroup, 64, 64, gl_MatrixUseA>(bfloat16_t(1.0)); }
