import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import DownpipeFiles

/// `Rename` and `Then`.
@Suite(.endsHangs)
struct RenameTests {
  @Test func theNewNameIsPublished() async throws {
    let folder = try TemporaryFolder()
    let store = FileStore(folder.path)
    let staged = try await store.staged([1], name: "a.bin")
    let renamed = try await Rename { "new " + $0.name }.process(staged, in: try context())
    #expect(renamed.name == "new a.bin" && renamed.location == staged.location)
    _ = try await store.publish(renamed, of: nil, at: .init(), in: try context())
    #expect(try folder.tree() == ["new a.bin": [1]])
  }

  @Test func valuesOfTheRequestCanBeUsed() async throws {
    let request = try DownloadRequest("https://example.org/a").with(\.metadata, ["title": "AC/DC"])
    let context = ProcessingContext(request: request, workspace: nil)
    let step = Rename { artifact, context in
      context.request.metadata["title"].map { SafeFileName.make(fromTitle: $0) + ".mp3" } ?? artifact.name
    }
    let artifact = Artifact(location: .memory([1]), name: "a")
    #expect(try await step.process(artifact, in: context).name == "AC-DC.mp3")
  }

  @Test(arguments: [
    "", ".", "..", "a/b", "/a", "../a", "a\u{0}", "a\nb", "\u{7F}", "\u{1B}[2J", String(repeating: "a", count: 256),
  ])
  func unsafeNamesAreRefused(_ name: String) async throws {
    let artifact = Artifact(location: .memory([1]), name: "a")
    await #expect {
      try await Rename { _ in name }.process(artifact, in: try context())
    } throws: { ($0 as? DownloadError)?.code == .unsafePath }
  }

  @Test("what has been published keeps its name: the step says where it belongs")
  func publishedArtifacts() async throws {
    let folder = try TemporaryFolder()
    let workspace = folder.path("work")
    try folder.makeFolder("work/album")
    try folder.makeFolder("moved")
    let context = ProcessingContext(request: try DownloadRequest("https://example.org/a"), workspace: workspace)
    let step = Rename { _ in "other" }
    let staged = Artifact(kind: .directory, location: .path(workspace + "/album"), name: "album")
    #expect(try await step.process(staged, in: context).name == "other")
    let moved = Artifact(kind: .directory, location: .path(folder.path("moved")), name: "moved")
    let file = Artifact(location: .path(try folder.write([1], to: "x")), name: "x", modifiedAt: Date())
    for published in [moved, file] {
      await #expect {
        try await step.process(published, in: context)
      } throws: { ($0 as? DownloadError)?.code == .invalidPipeline }
      // The name that it has is no change.
      #expect(try await Rename { $0.name }.process(published, in: context) == published)
    }
  }

  @Test func renameConforms() async throws {
    try await PostProcessorConformance(
      Rename { $0.name + ".bak" }, .init(Array("bytes".utf8), named: "a.txt", named: "a.txt.bak"),
      and: .init(Array("other".utf8), named: "b", named: "b.bak")
    ).run()
  }

  // MARK: Then

  @Test func theClosureGetsTheArtifact() async throws {
    let folder = try TemporaryFolder()
    let artifact = Artifact(location: .path(try folder.write([1], to: "x")), name: "x")
    let seen = Watched<[String]>([])
    let step = Then { artifact, context in seen.update { $0.append("\(context.request.id) \(artifact.name)") } }
    #expect(try await step.process(artifact, in: try context(id: "7")) == artifact)
    #expect(seen.value == ["7 x"])
  }

  private struct Failure: Error, CustomStringConvertible {
    let description = "could not reach https://user:secret@example.org/?token=abc"
  }

  @Test func errorsFailTheStep() async throws {
    let artifact = Artifact(location: .memory([1]), name: "x")
    await #expect {
      try await Then("notify") { _, _ in throw Failure() }.process(artifact, in: try context())
    } throws: { error in
      guard let error = error as? DownloadError else { return false }
      return error.code == .processing && error.stage == "notify" && error.cause is Failure
        && !error.message.contains("secret") && !error.message.contains("abc")
    }
    await #expect {
      try await Then { _, _ in throw DownloadError(.damaged, "no film") }.process(artifact, in: try context())
    } throws: { ($0 as? DownloadError)?.code == .damaged }
    await #expect(throws: CancellationError.self) {
      try await Then { _, _ in throw CancellationError() }.process(artifact, in: try context())
    }
  }

  @Test func thenConforms() async throws {
    try await PostProcessorConformance(
      Then { _, _ in }, .init(Array("bytes".utf8), named: "a.txt", named: "a.txt"),
      and: .init([1], named: "b", named: "b")
    ).run()
  }

  @Test func printedPipelines() throws {
    let pipeline = try Pipeline {
      FakeSource([:])
      FileStore("/srv/x")
      Rename { $0.name }
      try SetPermissions(0o644)
      try MoveInto(template: "/srv/{host}/{name}")
      SetModificationDate()
      Quarantine()
      Then { _, _ in }
      Then("notify") { _, _ in }
    }
    let steps = pipeline.description.split(separator: "\n").first { $0.contains("→ steps") }
    #expect(
      steps.map(String.init)
        == "→ steps         Rename (a name per download) → SetPermissions (0o644) → MoveInto (/srv/{host}/{name}, keep both) "
        + "→ SetModificationDate (as the server states) → Quarantine (origin and referrer) → Then → notify (calls a closure)"
    )
  }
}
