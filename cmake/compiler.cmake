# Language level, warnings and the flags of each build type. No build type defines NDEBUG: checks are part of the program.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1")
set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g")
set(CMAKE_CXX_FLAGS_ASAN "-O1 -g1 -fsanitize=address,undefined -fno-sanitize-recover=undefined")
set(CMAKE_CXX_FLAGS_TSAN "-O1 -g1 -fsanitize=thread")
# Instrumented for libFuzzer, whose own main a fuzz target alone links.
set(CMAKE_CXX_FLAGS_FUZZ "-O1 -g1 -fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-recover=undefined")
set(CMAKE_EXE_LINKER_FLAGS_FUZZ "-fsanitize=address,undefined")
set(CMAKE_EXE_LINKER_FLAGS_ASAN "-fsanitize=address,undefined")
set(CMAKE_EXE_LINKER_FLAGS_TSAN "-fsanitize=thread")

add_compile_options(-Wall -Wextra -Werror -fno-omit-frame-pointer)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_BUILD_TYPE MATCHES "^(Asan|Tsan)$")
  # GCC's flow warnings misfire on instrumented code.
  add_compile_options(-Wno-maybe-uninitialized -Wno-stringop-overflow)
endif()

# __FILE__ reads "raft/core.cpp" wherever the tree stands, so that messages are equal in every checkout. ccache may hand
# the compiler paths relative to the build directory: the second map is for those.
add_compile_options("-fmacro-prefix-map=${CMAKE_SOURCE_DIR}/=" "-fmacro-prefix-map=../../=")

find_program(NARAD_GOLD ld.gold)
# Gold warns of a hundred symbols of clang's sanitizers.
if(NARAD_GOLD AND NOT CMAKE_BUILD_TYPE STREQUAL "Fuzz")
  add_link_options(-fuse-ld=gold)
endif()
