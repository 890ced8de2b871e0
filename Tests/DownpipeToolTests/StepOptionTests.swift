import ArgumentParser
import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import DownpipeTool

/// The options for finished files, and what the ledger keeps of them.
@Suite(.endsHangs)
struct StepOptionTests {
  private let url = "https://example.org/film.tar.gz"

  private func plan(_ arguments: [String]) throws -> GetPlan {
    let command = try GetCommand.parse([url] + arguments)
    var plan = try command.input.plan()
    (plan.steps, plan.checksums) = try command.steps.plan(isSingle: plan.isSingle) { text throws(UsageError) in text }
    return plan
  }

  @Test("every option reaches the request and comes back from it")
  func options() throws {
    let folder = try TemporaryFolder()
    let ring = try folder.write([1], to: "ring.gpg")
    var arguments = [
      "--checksum-file", "SHA256SUMS", "--require-digest", "--keyring", ring, "--keep-time", "--name", "{host}/{name}",
      "--move-into",
      "/films",
    ]
    var names: Set = [
      "VerifyChecksum", "ChecksumFile", "RequireDigest", "Signature", "SetModificationDate", "MoveInto",
    ]
    #if Command
      arguments += ["--on-finish", "/bin/sh", "--on-finish-arg", "-c", "--on-finish-arg", "exit 0"]
      names.insert("RunCommand")
    #endif
    let plan = try plan(arguments)
    let request = try plan.request(for: url)
    let steps = RequestSteps(request)
    #expect(steps == plan.steps && request.steps == .only(names))
    #expect(steps.folder == "/films" && steps.nameTemplate == "{host}/{name}" && steps.keepsTime)
    #expect(steps.signature?.key == .openPGP(ring) && steps.requiresDigest)
    #expect(steps.checksumFile?.file == .beside("SHA256SUMS"))
    #if Command
      #expect(steps.command?.program == "/bin/sh" && steps.command?.arguments == ["-c", "exit 0"])
    #endif
    // Without options, a request has what it had before there were any.
    let plain = try self.plan([]).request(for: url)
    #expect(plain.steps == .only("VerifyChecksum") && plain.metadata.isEmpty)
  }

  @Test("each step of a request is one of the pipeline")
  func pipeline() throws {
    let pipeline = try Pipeline(PipelineSettings(directory: "/d"))
    let known = Set(pipeline.steps.map(\.name))
    var steps = RequestSteps(gunzips: true, folder: "/f")
    steps.strippedComponents = 1
    steps.checksumFile = CompanionPlace(stored: ".sha256")
    steps.keepsTime = true
    steps.requiresDigest = true
    var request = try DownloadRequest(url)
    steps.attach(to: &request)
    request.steps = .only(request.steps.names?.union(["Signature", "RunCommand"]) ?? [])
    #expect(request.steps.names?.isSubset(of: known) == true, "\(known)")
  }

  #if Archive
    @Test("--extract and the folders that it removes")
    func extract() throws {
      #expect(try plan(["--extract"]).steps.strippedComponents == 0)
      let plan = try plan(["--extract", "--strip-components", "2", "--keep-time"])
      #expect(RequestSteps(try plan.request(for: url)).strippedComponents == 2)
      #expect(!plan.steps.keepsTime, "unpacked files have the times of the archive")
      #expect(ExtractStep.folderName(for: "film.tar.gz") == "film")
    }
  #endif

  @Test(
    "options that contradict each other are refused before anything is fetched",
    arguments: [
      (["--extract", "--gunzip"], "--gunzip"), (["--strip-components", "1"], "--extract"),
      (["--signature", "auto"], "--pubkey"), (["--pubkey", "RWx", "--keyring", "/x"], "different"),
      (["--keyring", "/no/such/file"], "--keyring"), (["--pubkey", "nonsense"], "--pubkey"),
      (["--checksum-file", "a\u{1}b"], "--checksum-file"), (["--checksum-file", "gopher://a/b"], "--checksum-file"),
      (["--checksum-file", "/no/such/file"], "--checksum-file"), (["--name", "fixed"], "--name"),
      (["--name", "/abs/{name}"], "--name"), (["--name", "../{name}"], "--name"), (["--name", "{what}"], "--name"),
      (["--on-finish-arg", "x"], "--on-finish"), (["--on-finish", "/no/such/program"], "--on-finish"),
      (["--metalink", "-o", "x"], "--output"), (["--metalink", "--mirror", "http://a/b"], "--mirror"),
    ] as [([String], String)])
  func contradictions(_ arguments: [String], _ hint: String) {
    #expect { try plan(arguments) } throws: { error in
      let text = (error as? UsageError)?.description ?? GetCommand.fullMessage(for: error)
      return text.contains(hint)
    }
  }

  @Test("settings that the ledger has lost or that were changed fail the step, and leave nothing out")
  func lostSettings() async throws {
    var steps = RequestSteps()
    steps.checksumFile = CompanionPlace(stored: ".sha256")
    var request = try DownloadRequest(url)
    steps.attach(to: &request)
    request.steps = .only("ChecksumFile", "Signature", "RunCommand")
    for metadata in [[:], ["downpipe.key": "x", "downpipe.on-finish": "{}", "downpipe.signature": "data:;base64,?"]] {
      request.metadata = metadata
      let context = ProcessingContext(request: request, workspace: nil)
      let artifact = Artifact(location: .memory([1]), name: "a")
      for step in [ChecksumFileStep(), SignatureStep(), CommandStep(rule: .all)] as [any UniversalPostProcessor] {
        #expect(step.isNeeded(in: context))
        let error = await #expect(throws: DownloadError.self) { try await step.process(artifact, in: context) }
        #expect(error?.code == .invalidRequest, "\(step.name)")
      }
    }
  }

  @Test("a template from a ledger stays in the folder")
  func templates() async throws {
    let folder = try TemporaryFolder()
    _ = try folder.write([1], to: "else/x")
    try FileManager.default.createDirectory(atPath: folder.path("out"), withIntermediateDirectories: true)
    try FileManager.default.createSymbolicLink(
      atPath: folder.path("out/link"), withDestinationPath: folder.path("else"))
    let place = PlacementStep(
      directory: folder.path("out"), conflict: .keepBoth, scope: PathScope(directory: folder.path("out"), ledger: nil))
    for template in ["../else/{name}", "link/{name}", "../{name}"] {
      var steps = RequestSteps()
      steps.nameTemplate = template
      var request = try DownloadRequest(url)
      steps.attach(to: &request)
      let context = ProcessingContext(request: request, workspace: folder.path)
      let artifact = Artifact(location: .path(try folder.write([1], to: "staged")), name: "film", size: 1)
      let error = await #expect(throws: DownloadError.self) { try await place.process(artifact, in: context) }
      #expect(error?.code == .unsafePath, "\(template)")
    }
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path("else")) == ["x"])
  }

  #if Command
    @Test("programs of other commands run only when all are allowed")
    func programs() throws {
      let own = try #require(try FinishCommand(program: "/bin/sh", arguments: ["a"]))
      let other = try #require(try FinishCommand(program: "/bin/sh", arguments: ["b"]))
      try ProgramRule.all.check(own)
      try ProgramRule.only(own).check(own)
      for rule in [ProgramRule.none, .only(other)] {
        let error = #expect(throws: DownloadError.self) { try rule.check(own) }
        #expect(error?.code == .permission)
      }
      #expect(try ResumeCommand.parse(["--allow-programs"]).programs.rule == .all)
      #expect(try RetryCommand.parse([]).programs.rule == .none)
    }
  #endif

  @Test("the files of a Metalink document keep their ids while the mirrors change")
  func metalinkIdentities() throws {
    let first = DownloadIdentity(document: "http://a/x.meta4", file: "film")
    #expect(first == DownloadIdentity(document: "http://a/x.meta4", file: "film"))
    #expect(first != DownloadIdentity(document: "http://a/x.meta4", file: "other"))
    #expect(first != DownloadIdentity(url: "http://a/x.meta4", outputName: "film"))
    #expect(first != DownloadIdentity(url: "metalink\nhttp://a/x.meta4", outputName: "film2"))
  }
}
