import DownpipeTesting
import HangLimit
import Testing

@testable import DownpipeCore

@Suite(.endsHangs)
struct DeletionsTests {
  private let deletions = Deletions()

  @Test("what is kept while deletions go on stays, and so does a folder that it is in")
  func kept() async throws {
    #expect(await !deletions.keep("early"))
    #expect(deletions.begin(7))
    #expect(await deletions.keep("album/cover.jpg"))
    for path in ["early", "album", "album/cover.jpg", "album/other"] {
      var isDeleted = false
      try await deletions.delete(path) { isDeleted = true }
      #expect(isDeleted == ["early", "album/other"].contains(path), "\(path)")
    }
    deletions.drop(["album/cover.jpg"])
    var isDeleted = false
    try await deletions.delete("album/cover.jpg") { isDeleted = true }
    #expect(isDeleted)
  }

  @Test("another deletion that ends protects no less")
  func several() async throws {
    #expect(deletions.begin(Deletions.ofOthers) && deletions.first == Deletions.ofOthers)
    #expect(!deletions.begin(Deletions.ofOthers), "one at a time")
    #expect(deletions.begin(7) && deletions.first == 7)
    #expect(await deletions.keep("file"))
    deletions.end(7)
    try await deletions.delete("file") { Issue.record("it is kept") }
    deletions.end(Deletions.ofOthers)
    var isDeleted = false
    try await deletions.delete("file") { isDeleted = true }
    #expect(isDeleted)
  }

  @Test("a file is kept when no deletion of it, or of a folder that it is in, is in progress", arguments: ["a/b", "a"])
  func waits(path: String) async throws {
    deletions.begin(7)
    let (held, released) = (Watched(0), Watched(false))
    let works = (0..<2).map { _ in
      Task { [deletions] in
        try await deletions.delete(path) {
          held.update { $0 += 1 }
          await released.wait { $0 }
        }
      }
    }
    await held.wait { $0 == 2 }
    let isKept = Watched(false)
    let keeping = Task { [deletions] in
      let mayBeGone = await deletions.keep("a/b")
      isKept.update { $0 = true }
      return mayBeGone
    }
    for _ in 0..<50 { await Task.yield() }
    #expect(!isKept.value)
    released.update { $0 = true }
    #expect(await keeping.value)
    for work in works { try await work.value }
  }
}
