#if LIBCURL
  import DownpipeTesting
  import Foundation

  #if canImport(Glibc)
    import Glibc
  #elseif canImport(Musl)
    import Musl
  #elseif canImport(Darwin)
    import Darwin
  #endif

  /// An HTTP proxy that makes tunnels (`CONNECT`) to ports of this machine, under every host name.
  final class TunnelProxy: Sendable {
    private let listener: Listener
    private let log: Watched<[String]>
    var port: Int { listener.port }

    /// The first lines of the requests so far.
    var requests: [String] { log.value }

    /// - Parameter count: Tunnels after this number are made, and nothing passes through them.
    init(silentAfter count: Int = .max) throws {
      let log = Watched<[String]>([])
      self.log = log
      listener = try Listener { descriptor in
        Thread.detachNewThread {
          let client = Connection(descriptor)
          guard let request = client.readLine() else { return client.close() }
          let number = log.update { log in
            log.append(request)
            return log.count
          }
          while let line = client.readLine(), !line.isEmpty {}
          let words = request.split(separator: " ")
          guard words.count == 3, words[0] == "CONNECT",
            let port = words[1].split(separator: ":").last.flatMap({ Int($0) }),
            let server = Self.connect(to: port)
          else {
            client.send("HTTP/1.1 405 No\r\n\r\n")
            return client.close()
          }
          client.send("HTTP/1.1 200 OK\r\n\r\n")
          guard number <= count else {
            client.waitForEnd()
            _ = Connection.close(server)
            return client.close()
          }
          Thread.detachNewThread { Connection(server).relay(to: Connection(descriptor)) }
          client.relay(to: Connection(server))
        }
      }
    }

    private static func connect(to port: Int) -> Int32? {
      #if canImport(Glibc)
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
      #else
        let descriptor = socket(AF_INET, SOCK_STREAM, 0)
      #endif
      _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_addr.s_addr = inet_addr("127.0.0.1")
      address.sin_port = UInt16(port).bigEndian
      let isConnected = withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
          #if canImport(Glibc)
            Glibc.connect(descriptor, address, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
          #elseif canImport(Musl)
            Musl.connect(descriptor, address, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
          #else
            Darwin.connect(descriptor, address, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
          #endif
        }
      }
      if isConnected { return descriptor }
      _ = Connection.close(descriptor)
      return nil
    }
  }
#endif
