// The element functions for shaders: exp_accurate, log_accurate, tanh_accurate, erf_accurate, sigmoid_accurate and their building blocks. Drivers'
// own functions are too inaccurate, and their bits differ between devices. formulas.glsl states the errors.
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
