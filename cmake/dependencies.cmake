# Everything comes from Debian packages (scripts/deps.sh lists them).

find_package(Threads REQUIRED)
find_package(Boost 1.81 REQUIRED COMPONENTS context)
find_package(OpenSSL REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(prometheus-cpp CONFIG REQUIRED)
find_package(GTest REQUIRED)

# name, library, header: an imported target for a package whose own CMake files are missing or ask for more than we use.
function(narad_import name library header)
  find_library(NARAD_LIB_${library} NAMES ${library} REQUIRED)
  find_path(NARAD_INC_${library} NAMES ${header} REQUIRED)
  add_library(${name} UNKNOWN IMPORTED GLOBAL)
  set_target_properties(${name} PROPERTIES IMPORTED_LOCATION "${NARAD_LIB_${library}}")
endfunction()

# The simulator overrides one function of RocksDB, which only the shared library allows: never link the archive.
set(CMAKE_FIND_LIBRARY_SUFFIXES_SAVED ${CMAKE_FIND_LIBRARY_SUFFIXES})
set(CMAKE_FIND_LIBRARY_SUFFIXES .so)
narad_import(narad::rocksdb rocksdb rocksdb/db.h)
narad_import(narad::uring uring liburing.h)
set(CMAKE_FIND_LIBRARY_SUFFIXES ${CMAKE_FIND_LIBRARY_SUFFIXES_SAVED})
narad_import(narad::flatbuffers flatbuffers flatbuffers/flatbuffers.h)
narad_import(narad::rapidcheck rapidcheck rapidcheck.h)

find_program(NARAD_FLATC flatc REQUIRED)
