#if os(Linux)
  import DownpipeCore
  import DownpipeGates
  import DownpipePOSIX
  import DownpipeTesting
  import Foundation
  import Glibc
  import HangLimit
  import Testing

  @Suite(.endsHangs)
  struct LinuxRoutesTests {
    @Test func readsThisMachine() throws {
      let table = try LinuxRoutes().read()
      #expect(table.ownAddresses.contains(IPAddress(family: .v4, bits: 0x7F00_0001)))
      #expect(!table.downInterfaces.contains("lo"))
      #expect(try LinuxRoutes().read() == table)
    }

    @Test func reportsChangesUntilTheStreamEnds() async throws {
      let changes = try #require(LinuxRoutes().changes(), "rtnetlink is refused here")
      let task = Task { for await _ in changes {} }
      task.cancel()
      await task.value
    }

    @Test(
      "A table that cannot be read is an error of the network",
      arguments: [
        (EIO, .network), (EACCES, .network), (EPERM, .network), (ENOSYS, .network), (EMFILE, .tooManyOpenFiles),
        (ENFILE, .tooManyOpenFiles),
      ] as [(CInt, DownloadError.Code)])
    func failures(number: CInt, code: DownloadError.Code) {
      let error = LinuxRoutes.failure(SystemError(number), reading: "/proc/net/route")
      #expect(error.code == code)
      #expect(error.message.hasPrefix("could not read /proc/net/route: "))
      #expect(!error.message.contains("disk") && !error.message.contains("folder"), "\(error.message)")
    }

    @Test("A table that is a folder, or fails while it is read, is an error of the network")
    func unreadableTables() throws {
      for target in ["/proc/self/mem", "/proc"] {
        let folder = try TemporaryFolder()
        try FileManager.default.createSymbolicLink(atPath: folder.path("route"), withDestinationPath: target)
        let routes = LinuxRoutes(folder: folder.path, interfaces: { nil }, events: { nil })
        let error = #expect(throws: DownloadError.self) { try routes.read() }
        #expect(error?.code == .network, "\(String(describing: error))")
      }
    }

    @Test func readsFoldersWithTheSameLayout() throws {
      let folder = FileManager.default.temporaryDirectory.appending(path: "downpipe-routes-\(UUID().uuidString)")
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      defer { try? FileManager.default.removeItem(at: folder) }
      let routes = LinuxRoutes(
        folder: folder.path(percentEncoded: false), interfaces: { InterfaceStates(down: ["eth9"]) }, events: { nil })
      #expect(throws: DownloadError.self) { try routes.read() }
      #expect(routes.changes() == nil)

      let line = "eth9\t00000000\t00000000\t0001\t0\t0\t0\t00000000\n"
      try Data(line.utf8).write(to: folder.appending(path: "route"))
      let table = try routes.read()
      #expect(table.routes.map(\.interface) == ["eth9"])
      #expect(table.obstacleToNames == "the default route is over eth9, which has no link")

      // A table over the size limit is truncated, so a missing route does not close the gate.
      let long = String(repeating: line, count: (5 << 20) / line.utf8.count)
      try Data(long.utf8).write(to: folder.appending(path: "route"))
      #expect(try routes.read().isTruncated)
    }
  }
#endif
