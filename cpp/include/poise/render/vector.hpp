// Vectors, frames and colours of the ray caster, in single precision.
#pragma once

#include <cmath>
#include <limits>

#include "poise/pack.hpp"  // POISE_INLINE

namespace poise::pictures {

struct V3 {
    float x, y, z;
};
POISE_INLINE V3 operator+(V3 a, V3 b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
POISE_INLINE V3 operator-(V3 a, V3 b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
POISE_INLINE V3 operator*(float k, V3 a) { return {k * a.x, k * a.y, k * a.z}; }
POISE_INLINE V3 operator*(V3 a, V3 b) { return {a.x * b.x, a.y * b.y, a.z * b.z}; }
POISE_INLINE float dot(V3 a, V3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
POISE_INLINE V3 cross(V3 a, V3 b) {
    return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
POISE_INLINE float length(V3 a) { return std::sqrt(dot(a, a)); }
POISE_INLINE V3 mix(V3 a, V3 b, float k) { return a + k * (b - a); }

// not std::max: it returns a reference, which hides the two numbers from the vector units
POISE_INLINE float larger(float a, float b) { return a > b ? a : b; }
POISE_INLINE float smaller(float a, float b) { return a < b ? a : b; }
POISE_INLINE float clamp(float x, float low, float high) { return smaller(larger(x, low), high); }
POISE_INLINE V3 larger(V3 a, V3 b) {
    return {larger(a.x, b.x), larger(a.y, b.y), larger(a.z, b.z)};
}
POISE_INLINE V3 smaller(V3 a, V3 b) {
    return {smaller(a.x, b.x), smaller(a.y, b.y), smaller(a.z, b.z)};
}
POISE_INLINE V3 unit(V3 a) { return (1.0f / larger(length(a), 1e-30f)) * a; }

inline V3 vec(const double* v) {
    return {static_cast<float>(v[0]), static_cast<float>(v[1]), static_cast<float>(v[2])};
}

// rows of a rotation: R v with v in the frame whose axes are the columns
struct Frame {
    V3 x, y, z;  // the axes, in the world
    V3 out(V3 v) const { return v.x * x + v.y * y + v.z * z; }
    V3 in(V3 v) const { return {dot(v, x), dot(v, y), dot(v, z)}; }
};

constexpr float kNear = 1e-3f;  // nothing nearer than this is seen [m]
constexpr float kFar = std::numeric_limits<float>::infinity();

// from sRGB to light
inline float linear(float s) {
    return s <= 0.04045f ? s / 12.92f : std::pow((s + 0.055f) / 1.055f, 2.4f);
}
inline V3 linear(const float* s) { return {linear(s[0]), linear(s[1]), linear(s[2])}; }

}  // namespace poise::pictures
