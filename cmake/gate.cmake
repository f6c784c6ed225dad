# Targets that run the gate: `lint`, `ci` (.ci/run) and `monitor` (.ci/monitor, which repeats it after every change).
add_custom_target(lint COMMAND ${PROJECT_SOURCE_DIR}/.ci/lint WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} USES_TERMINAL VERBATIM)
add_custom_target(ci COMMAND ${PROJECT_SOURCE_DIR}/.ci/run WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} USES_TERMINAL VERBATIM)
add_custom_target(monitor COMMAND ${PROJECT_SOURCE_DIR}/.ci/monitor WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} USES_TERMINAL VERBATIM)
