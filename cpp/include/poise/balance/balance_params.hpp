// Parameters of the balance solver (macchietto2008, chapters 5 and 6). poise.control.Balance sets
// those of the first three groups; the defaults of the last group were tuned on the built-in clips.
#pragma once

namespace poise {

struct BalanceParams {
    // ---- what is solved
    bool linear = true;           // regulate the linear momentum
    bool angular = true;          // regulate the angular momentum
    bool friction_cones = false;  // ground forces inside friction cones; else equality constraints
    bool follow_motion = true;    // the desired CoM follows the motion's; else com_offset holds
    bool always_support = false;  // every support should stand at all times

    // ---- gains: stiffness [1/s^2] and damping [1/s]
    double linear_gains[2] = {15.0, 7.7};               // of the center of mass
    double support_gains[2] = {50.0, 20.0};             // keep a support level and at rest
    double goal_gains[2] = {150.0, 24.49489742783178};  // of goals; critically damped
    double limit_gains[2] = {0.0, 0.0};  // added to tracking per radian beyond a joint's range

    // ---- weights and geometry
    double linear_weight = 1.0;         // beta_l
    double gamma = 0.3;                 // weight of the angular objective per CMP offset [1/m]
    double goal_weight = 1000.0;        // beta_p of each goal
    double max_cmp_offset = 0.05;       // distance from the desired CoP to the desired CMP [m]
    double margin = 0.005;              // how far inside of the soles the CoP has to lie [m]
    double ground_height = 0.0;         // [m]
    double com_offset[2] = {0.0, 0.0};  // desired CoM from the center of the supports [m]

    // ---- tuned. Of each pair, a support weight is 1 below the first number and 0 above the
    // second.
    double sole_height_fade[2] = {0.004, 0.015};   // height of a sole over the ground [m]
    double target_height_fade[2] = {0.005, 0.03};  // the same of the target [m]
    // 1 - cos of the angle between a sole and the target's, 30 and 60 degrees: a sole that stands
    // on its edge carries nothing, and the feet of a fallen character are near the ground, too
    double tilt_fade[2] = {0.1339745962155613, 0.4999999999999999};
    // horizontal distance of the CoM from all soles by its height: beyond, no force of the soles
    // stops the fall. Characters that recover from a push lean by less than half of it.
    double lean_fade[2] = {0.25, 0.5};
    // downward acceleration of a sole that should stand and does not touch [m/s^2]: at 2 it
    // bounces, at 0 a foot that has landed carries nothing
    double press_acceleration = 0.3;
    // a goal that is farther away pulls as if it were this far [m], and weighs less by the square
    // of the distance: what cannot be reached does not tear the character down
    double max_goal_distance = 0.2;
    double fading_weight = 10.0;    // of a support of weight 1/2, beside tracking at 1
    double support_weight = 1e3;    // of a support, with friction cones
    double hard_threshold = 0.999;  // supports of this weight on are constraints, without cones
    double force_regularization = 1e-8;  // beside the largest entry of the quadratic form
    double rank_tolerance = 1e-9;  // constraint rows that are smaller beside the largest drop out
    double capture_time = 0.3;     // 1/omega of an upright body, for the capture point error [s]
};

}  // namespace poise
