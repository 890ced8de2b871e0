import AppleDarwin
import DownpipeCore
import DownpipePOSIX
import Fixtures
import Synchronization
import Testing

@testable import ChildProgram
@testable import ToolProcess

@Suite(.serialized, .timeLimit(.minutes(5)))
struct DarwinTests {
  private let folder: TemporaryFolder
  init() throws { folder = try TemporaryFolder() }

  private func withFile(_ body: (CInt) throws -> Void) throws {
    let file = try FileSystem.system.open(Entry(folder.path("a")), O_RDWR | O_CREAT)
    defer { try? FileSystem.system.close(file) }
    try body(file)
  }

  @Test(arguments: [0, ENOTSUP, EINVAL, ENOTTY])
  func bytesAreFlushedWithoutFullSync(code: Int32) throws {
    fullSync.store(code, ordering: .relaxed)
    defer { fullSync.store(0, ordering: .relaxed) }
    try withFile { try FileSystem.system.flush($0) }
  }

  @Test func failuresOfFullSyncAreReported() throws {
    fullSync.store(EIO, ordering: .relaxed)
    defer { fullSync.store(0, ordering: .relaxed) }
    try withFile { file in
      #expect(throws: SystemError(EIO)) { try FileSystem.system.flush(file) }
    }
  }

  @Test func filesHaveNoUnnamedForm() throws {
    let error = #expect(throws: SystemError.self) { try FileSystem.system.openUnnamed(in: folder.path) }
    #expect(error?.saysNoUnnamedFiles == true)
    try withFile { file in
      let error = #expect(throws: SystemError.self) { try FileSystem.system.link(file, to: Entry(folder.path("b"))) }
      #expect(error?.saysNoHardLinks == true)
    }
  }

  @Test func entriesAndStatus() throws {
    try withFile { file in
      try Array("hello".utf8).withUnsafeBytes { try FileSystem.system.write(file, $0, at: 0) }
      let status = try FileSystem.system.status(file)
      #expect(status.kind == .file && status.size == 5 && status.links == 1)
      #expect(status.modified.seconds > 1_700_000_000)
      try FileSystem.system.setModified(file, like: status)
      #expect(try FileSystem.system.status(file).modified == status.modified)
      try FileSystem.system.setPermissions(file, 0o640)
      #expect(try FileSystem.system.status(Entry(folder.path("a"))).permissions == 0o640)
    }
    let open = try FileSystem.system.open(Entry(folder.path), O_RDONLY | O_DIRECTORY)
    defer { try? FileSystem.system.close(open) }
    #expect(try FileSystem.system.entries(of: open).map(\.name) == ["a"])
    #expect(try FileSystem.system.availableBytes(at: folder.path) > 0)
  }

  @Test func ownersAreKnownByBootAndStart() {
    let boot = "0F6B6E0C-4C1E-4B0B-9D5C-1D9C5A1E2F3A"
    Kernel.current.withLock { kernel in
      kernel.texts["kern.bootsessionuuid"] = boot
      kernel.starts[getpid()] = (1_763_000_000, 250_001)
      kernel.starts[77] = (1_763_000_001, 0)
    }
    #expect(ProcessOwner.startTime(of: getpid()) == 1_763_000_000_250_001)
    #expect(ProcessOwner.startTime(of: 77) == 1_763_000_001_000_000)
    #expect(ProcessOwner.startTime(of: 78) == nil)
    let owner = ProcessOwner.new()
    defer { owner.end() }
    #expect(owner.boot == boot && owner.start == 1_763_000_000_250_001 && owner.space.isEmpty)
  }

  @Test func descriptorLimit() {
    DescriptorLimit.raise()
    #expect(DescriptorLimit.mostDownloads(connections: 1) >= 1)
  }

  @Test func limitsAreTriedOut() {
    #expect(LimitTrial.canStart(4))
    #expect(LimitTrial.stackSize == 512 << 10)
    #expect(LimitTrial.canReserve(1 << 20) && !LimitTrial.canReserve(1 << 60))
  }

  @Test func programsAreRun() async throws {
    func run(_ script: String, _ name: String) async throws -> Int {
      try await ChildProgram(
        path: "/bin/sh", arguments: ["-c", script], environment: ["NAME=value"],
        output: folder.path("\(name).out"), errors: folder.path("\(name).err")
      ).run()
    }
    #expect(try await run("echo $NAME; exit 3", "a") == 3)
    #expect(try FileSystem.system.status(Entry(folder.path("a.out"))).size == 6)
    #expect(try await run("kill -9 $$", "b") == 128 + 9)
    let task = Task { [path = folder.path] in
      try await ChildProgram(
        path: "/bin/sleep", arguments: ["1000"], environment: [], output: path + "/c.out", errors: path + "/c.err"
      ).run()
    }
    task.cancel()
    await #expect(throws: CancellationError.self) { _ = try await task.value }
  }

  @Test func connectionsAreRefused() throws {
    let port = try RefusingPort()
    defer { withExtendedLifetime(port) {} }
    let descriptor = socket(AF_INET, SOCK_STREAM, 0)
    defer { _ = close(descriptor) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = in_port_t(port.port).bigEndian
    address.sin_addr.s_addr = inet_addr("127.0.0.1")
    let code = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    #expect(code == -1 && errno == ECONNREFUSED)
  }
}
