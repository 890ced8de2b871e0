import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import DownpipeCore

/// Replacing stages while runs still use the old ones.
@Suite(.endsHangs)
struct LiveStagesTests {
  private func stages(_ sources: FakeSource...) -> LiveStages {
    let first = sources[0]
    let pipeline = Pipeline {
      first
      for source in sources.dropFirst() { source }
      FakeStorage()
    }
    return LiveStages(pipeline, sessions: sources)
  }

  private func source(_ name: String) -> FakeSource { FakeSource(everyURL: .init([]), name: name) }

  private func names(_ sessions: [any SourceSession]) -> [String] { sessions.compactMap { ($0 as? FakeSource)?.name } }

  @Test func aReplacedSourceIsIdleOnceNoRunIsAsOld() throws {
    let (old, new) = (source("web"), source("web"))
    var stages = stages(old, source("other"))
    let before = stages.current
    stages.replace(new, session: new)
    #expect(stages.current.sourcesVersion == before.sourcesVersion + 1)
    #expect(names(stages.current.sessions) == ["web", "other"], "it keeps its place")
    #expect(stages.current.sessions.first as? FakeSource === new)
    #expect(stages.current.pipeline.sources.first as? FakeSource === new)
    #expect(before.sessions.first as? FakeSource === old, "runs keep the stages they started with")
    #expect(stages.hasRetired)
    let busy = stages.takeIdle(oldest: before.sourcesVersion)
    #expect(busy.isEmpty)
    let idle = stages.takeIdle(oldest: stages.current.sourcesVersion)
    #expect(idle.first as? FakeSource === old)
    #expect(idle.count == 1 && !stages.hasRetired)
    let again = stages.takeIdle(oldest: nil)
    #expect(again.isEmpty, "each session is stopped once")
  }

  @Test func replacedTwiceEachGoesInItsTurn() {
    var stages = stages(source("web"))
    for _ in 0..<2 {
      let next = source("web")
      stages.replace(next, session: next)
    }
    let first = stages.takeIdle(oldest: 1)
    #expect(first.count == 1)
    let second = stages.takeIdle(oldest: nil)
    #expect(second.count == 1)
  }

  @Test func aNewSourceComesBehindTheOthersAndRetiresNone() {
    var stages = stages(source("web"))
    let new = source("ftp")
    stages.replace(new, session: new)
    #expect(names(stages.current.sessions) == ["web", "ftp"])
    #expect(!stages.hasRetired)
  }

  @Test func changingAPolicyKeepsTheSources() {
    var stages = stages(source("web"))
    let before = stages.current
    stages.change { $0.retry = FakeRetryPolicy(.giveUp) }
    #expect(stages.current.sourcesVersion == before.sourcesVersion)
    #expect(names(stages.current.sessions) == ["web"])
    #expect(stages.current.pipeline.retry is FakeRetryPolicy)
  }

  @Test func atTheEndAllAreStopped() {
    var stages = stages(source("web"), source("other"))
    let new = source("web")
    stages.replace(new, session: new)
    let all = stages.allSessions
    #expect(names(all).sorted() == ["other", "web", "web"])
  }
}
