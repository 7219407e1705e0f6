// io::Net on TCP sockets of this machine: nonblocking, TCP_NODELAY, SO_REUSEADDR. A read or write first tries the
// system call and waits for the poller only when the kernel has nothing; names are resolved on a file thread.
#pragma once

#include <memory>

#include "io/net.h"
#include "io/real/loop.h"

namespace io::real {

// `loop` outlives the net, its listeners and streams.
std::unique_ptr<Net> make_tcp_net(Loop& loop);

}  // namespace io::real
