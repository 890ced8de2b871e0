import ChildPipe
import DownpipePOSIX
import Foundation
import HangLimit
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

@Suite(.endsHangs)
struct ProcessOwnerTests {
  @Test func theTextIsParsed() {
    let owner = ProcessOwner.new()
    defer { owner.end() }
    #expect(ProcessOwner(owner.text) == owner)
    #expect(ProcessOwner("") == nil)
    #expect(ProcessOwner("a/b/c/d/e/f") == nil)
    #expect(ProcessOwner("a/b/c/1/2") == nil)
    #expect(owner.start > 0)
    #expect(!owner.boot.isEmpty)
  }

  @Test func anEndedOpeningIsGone() {
    let owner = ProcessOwner.new()
    let other = ProcessOwner.new()
    #expect(owner.standing == .alive)
    owner.end()
    #expect(owner.standing == .gone)
    #expect(other.standing == .alive)
    other.end()
  }

  @Test func anOpeningOfAnotherCopyOfTheCodeIsAlive() {
    var owner = ProcessOwner.new()
    owner.end()
    owner.opening = "another copy"
    #expect(owner.standing == .alive)
  }

  @Test func anEndedProcessIsGone() throws {
    let process = Process()
    process.executableURL = URL(filePath: "/bin/cat")
    let input = try ChildPipe()
    process.standardOutput = FileHandle.nullDevice
    try process.run(input: input)
    var owner = ProcessOwner.new()
    owner.end()
    owner.process = process.processIdentifier
    owner.start = try #require(ProcessOwner.startTime(of: process.processIdentifier))
    #expect(owner.standing == .alive)

    // A stopped process can continue.
    kill(owner.process, SIGSTOP)
    #expect(owner.standing == .alive)
    kill(owner.process, SIGCONT)

    var earlier = owner
    earlier.start -= 1
    #expect(earlier.standing == .gone, "the number belongs to another process now")
    earlier.host = "renamed"
    #expect(earlier.standing == .gone, "a machine can change its name")
    earlier.space = "elsewhere"
    #expect(earlier.standing == .unknown, "numbers of another namespace prove nothing")
    var unproved = owner
    unproved.start = 0
    #expect(unproved.standing == .unknown)

    try input.fileHandleForWriting.close()
    process.waitUntilExit()
    #expect(owner.standing == .gone)
  }

  /// Issue 8, defect 3: disk images are copied with host names and machine identifiers, so only the identifier of the
  /// boot is unique.
  @Test(arguments: ["another", ""])
  func anotherBootProvesNothing(_ boot: String) {
    var owner = ProcessOwner.new()
    owner.end()
    #expect(owner.standing == .gone)
    owner.boot = boot
    #expect(owner.standing == .unknown)
    owner.start -= 1
    #expect(owner.standing == .unknown)
    owner.host = "elsewhere"
    #expect(owner.standing == .unknown)
  }

  @Test(arguments: [("1 (a) Z 2", true), ("1 (a Z) S 2", false), ("1 (a) b) X 2", true), ("1 (a)", false), ("", false)])
  func aZombieCountsAsEnded(_ stat: String, _ isDead: Bool) {
    #expect(ProcessOwner.isDead(stat: stat) == isDead)
  }

  @Test(
    arguments: [
      ("1 (cat) S 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 4711 23", UInt64(4711)),
      ("1 (a) b (c)) S 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 4711 23", 4711),
      ("1 (cat) S 2 3", nil), ("", nil), ("no parenthesis", nil),
    ] as [(String, UInt64?)])
  func theStartTimeIsField22(_ stat: String, _ start: UInt64?) {
    #expect(ProcessOwner.startTime(inStat: stat) == start)
  }
}
