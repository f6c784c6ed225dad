#version 460
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_shader_16bit_storage : require
layout(buffer_reference) buffer words { uint16_t at[]; };
layout(push_constant) uniform push { words x; };
void main() { x.at[0] = uint16_t(1); }
