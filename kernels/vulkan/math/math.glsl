// The element functions for shaders: exp_accurate, log_accurate, tanh_accurate, erf_accurate, sigmoid_accurate and what they are made of.
// Drivers' own are too far off, and have other bits on every device. Errors stand in formulas.glsl.
#define number float
#define word uint
#define flag bool
#define code uint
#define FORMULA precise
#define choose(condition, yes, no) mix(no, yes, condition)
#include "body/formulas.glsl"
#undef number
#undef word
#undef flag
#undef code
#undef FORMULA
#undef choose
