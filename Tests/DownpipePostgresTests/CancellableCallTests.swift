#if Postgres
  import Foundation
  import Testing

  @testable import DownpipePostgres

  struct CancellableCallTests {
    private func pair() throws -> (here: CInt, there: CInt) {
      var sockets: [CInt] = [0, 0]
      try #require(socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0, &sockets) == 0)
      return (sockets[0], sockets[1])
    }

    private func isConnected(_ socket: CInt) -> Bool {
      var byte: UInt8 = 0
      return recv(socket, &byte, 1, CInt(MSG_DONTWAIT)) < 0
    }

    @Test func `a cancelled call loses its connection`() throws {
      let (here, there) = try pair()
      let call = CancellableCall()
      try call.begin(here)
      #expect(isConnected(there))
      call.cancel()
      #expect(!isConnected(there))
      call.end()
      #expect(throws: CancellationError.self) { try call.begin(here) }
      for socket in [here, there] { close(socket) }
    }

    @Test func `another file that has got the number of a lost connection stays open`() throws {
      let (lost, server) = try pair()
      let (other, peer) = try pair()
      let call = CancellableCall()
      try call.begin(lost)
      // The library closes its descriptor, and the number is used again.
      try #require(dup2(other, lost) == lost)
      call.cancel()
      #expect(isConnected(peer))
      #expect(!isConnected(server))
      call.end()
      for socket in [lost, server, other, peer] { close(socket) }
    }
  }
#endif
