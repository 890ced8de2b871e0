import DownpipeOwner
import Foundation
import Testing

@Suite(.timeLimit(.minutes(1)))
struct ProcessOwnerTests {
  @Test func itsTextComesBack() {
    let owner = ProcessOwner.new()
    defer { owner.end() }
    #expect(ProcessOwner(owner.text) == owner)
    #expect(ProcessOwner("") == nil)
    #expect(ProcessOwner("a/b/c/d/e/f") == nil)
    #expect(ProcessOwner("a/b/c/1/2") == nil)
    #expect(owner.start > 0)
    #expect(!owner.boot.isEmpty)
  }

  @Test func anOpeningIsGoneWhenItHasEnded() {
    let owner = ProcessOwner.new()
    let other = ProcessOwner.new()
    #expect(!owner.isGone)
    owner.end()
    #expect(owner.isGone)
    #expect(!other.isGone)
    other.end()
  }

  @Test func aRealProcessIsGoneWhenItHasEnded() throws {
    let process = Process()
    process.executableURL = URL(filePath: "/bin/cat")
    let input = Pipe()
    process.standardInput = input
    process.standardOutput = FileHandle.nullDevice
    try process.run()
    var owner = ProcessOwner.new()
    owner.end()
    owner.process = process.processIdentifier
    owner.start = try #require(ProcessOwner.startTime(of: process.processIdentifier))
    #expect(!owner.isGone)

    var earlier = owner
    earlier.start -= 1
    #expect(earlier.isGone, "the number belongs to another process now")
    var container = earlier
    container.space = "elsewhere"
    #expect(!container.isGone, "numbers of another space say nothing")
    var boot = owner
    boot.boot = "before"
    #expect(boot.isGone, "no process survives a restart of the machine")
    boot.host = "elsewhere"
    #expect(!boot.isGone)

    try input.fileHandleForWriting.close()
    process.waitUntilExit()
    #expect(owner.isGone)
  }

  @Test(arguments: [("1 (a) Z 2", true), ("1 (a Z) S 2", false), ("1 (a) b) X 2", true), ("1 (a)", false), ("", false)])
  func aZombieIsDead(_ stat: String, _ isDead: Bool) {
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
