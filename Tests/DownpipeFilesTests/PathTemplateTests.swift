import DownpipeCore
import DownpipePOSIX
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import DownpipeFiles

@Suite(.endsHangs)
struct PathTemplateTests {
  // 2024-02-29 23:59:59 UTC
  private static let leapDay = Date(timeIntervalSince1970: 1_709_251_199)
  // 2001-09-09 01:46:40 UTC
  private static let now = Date(timeIntervalSince1970: 1_000_000_000)

  private func context(
    url: String = "https://user:secret@Example.org:8080/a/film.mkv?sig=1", id: DownloadID = "id",
    metadata: [String: String] = [:], name: String? = nil, lastModified: Date? = leapDay
  ) throws -> ProcessingContext {
    ProcessingContext(
      request: try DownloadRequest(url, id: id, destination: .init(name: name)).with(\.metadata, metadata),
      workspace: nil,
      lastModified: lastModified)
  }

  /// The path below `/r` for a template that begins there.
  private func fill(_ template: String, _ artifact: Artifact, _ context: ProcessingContext) throws -> String {
    let template = try PathTemplate("/r/" + template)
    #expect(template.root == "/r" || template.root.hasPrefix("/r/"))
    let target = template.target(of: artifact, in: context, now: Self.now)
    return (target.directory.map { $0 + "/" } ?? "") + target.name
  }

  private let film = Artifact(location: .path("/x"), name: "film.mkv")

  @Test(arguments: [
    ("{host}/{year}/{name}", "example.org-8080/2024/film.mkv"),
    ("{year}-{month}-{day} {stem}.{extension}", "2024-02-29 film.mkv"),
    ("{id}", "id"), ("{metadata:show}/", "The Show/film.mkv"), ("{metadata:a/b} {name}", "slash film.mkv"),
    ("{metadata:none}/{name}", "_/film.mkv"), ("{{{name}}}", "{film.mkv}"), ("{{name}} {name}", "{name} film.mkv"),
    ("{year}//./x/{name}", "2024/x/film.mkv"), (".{id}/{name}", ".id/film.mkv"),
  ])
  func fields(_ template: String, _ path: String) throws {
    let context = try context(metadata: ["show": "The Show", "a/b": "slash", "empty": ""])
    #expect(try fill(template, film, context) == path)
  }

  @Test("without a date of the server, the date of the step counts")
  func dates() throws {
    #expect(try fill("{year}/{month}/{day}/{name}", film, try context(lastModified: nil)) == "2001/09/09/film.mkv")
    let early = Date(timeIntervalSince1970: -62_167_219_200)
    #expect(try fill("{year}/{name}", film, try context(lastModified: early)) == "0000/film.mkv")
    for extreme in [Double.infinity, -.infinity, .nan, 1e300] {
      let date = Date(timeIntervalSince1970: extreme)
      #expect(try fill("{year}/{name}", film, try context(lastModified: date)).count == "2024/film.mkv".count)
    }
  }

  @Test(arguments: [
    ("logs.tar.gz", "logs", "tar.gz"), ("README", "README", "_"), (".profile", "profile", "_"), ("a.b.c", "a.b", "c"),
  ])
  func stems(_ name: String, _ stem: String, _ ending: String) throws {
    let artifact = Artifact(location: .path("/x"), name: name)
    #expect(try fill("{stem}", artifact, try context()) == stem)
    #expect(try fill("{extension}/{id}", artifact, try context()) == ending + "/id")
    let folder = Artifact(kind: .directory, location: .path("/x"), name: "a.b")
    #expect(try fill("{stem}/{extension}/{name}", folder, try context()) == "a.b/_/a.b")
  }

  @Test func theFinalNameOfTheRequestCounts() throws {
    #expect(try fill("{stem}.{extension}", film, try context(name: "My film.avi")) == "My film.avi")
  }

  static let hostile = [
    "../../etc/passwd", "..", ".", "", "/", "//", "/etc/passwd", "..\\..\\x", "a/../../b", "\u{0}", "a\u{0}b", "\n",
    "\u{7F}x",
    "\u{202E}gpj.exe", "~", "~root", " ", "...", ". .", "CON", "nul.txt", "a\u{2028}b", "/\u{301}x", "{name}",
    "%2e%2e%2f", "-rf",
    String(repeating: "a", count: 10_000), String(repeating: "é", count: 300) + ".mkv",
    String(repeating: "../", count: 5000),
    "e" + String(repeating: "\u{301}", count: 5000), ".downpipe", "\u{FEFF}..", "..\u{200B}",
  ]

  @Test("a hostile value is one component, whichever field it comes from", arguments: hostile)
  func hostileValues(_ value: String) throws {
    for template in ["{metadata:x}/{name}", "{name}", "{stem}/{id}", "{metadata:x}{metadata:x}{id}{name}"] {
      let artifact = Artifact(location: .path("/x"), name: value)
      let path = try fill(template, artifact, try context(id: "id", metadata: ["x": value]))
      let components = path.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
      #expect(components.count == template.split(separator: "/").count, "\(path)")
      for component in components {
        try PathText.checkName(component)
        #expect(component.utf8.count <= 200)
        #expect(!component.hasPrefix("."), "\(component)")
        #expect(!component.unicodeScalars.contains { $0.value < 0x20 || $0.value == 0x7F })
      }
    }
  }

  @Test(arguments: [
    "", "/r", "~/Films", "{host}", "/r/{year}", "/r/{extension}", "/r/{nam}", "/r/{}", "/r/{metadata:}", "/r/{Name}",
    "/r/{name", "/r/name}", "/r/{tag:x}/{name}", "/r/{host}/../{name}", "/r/{host}/\u{0}/{name}", "/r\u{0}/{name}",
    "{{name}}",
  ])
  func refused(_ template: String) {
    #expect {
      _ = try MoveInto(template: template)
    } throws: { error in
      (error as? DownloadError)?.code == .invalidPipeline && (error as? DownloadError)?.stage == "MoveInto"
    }
  }

  @Test func roots() throws {
    #expect(try PathTemplate("/{name}").root == "/")
    #expect(try PathTemplate("~/Films/new/{name}").root == PathText.home + "/Films/new")
    #expect(try PathTemplate("{host}/{name}").root == PathText.absolute("."))
    #expect(try PathTemplate("/usr/../srv//x/{year}/b/{name}").root == "/srv/x")
    #expect(try PathTemplate("~{id}/{name}").root == PathText.absolute("."), "a tilde before a field is text")
  }

  // MARK: The step

  @Test func artifactsAreMoved() async throws {
    let folder = try TemporaryFolder()
    let step = try MoveInto(template: folder.path + "/to/{host}/{year}/{name}", onConflict: .keepBoth)
    for number in 1...2 {
      let artifact = Artifact(location: .path(try folder.write([UInt8(number)], to: "work/film.mkv")), name: "film.mkv")
      let moved = try await step.process(artifact, in: try context())
      #expect(moved.path == folder.path("to/example.org-8080/2024/film\(number == 1 ? "" : " (1)").mkv"))
    }
    #expect(
      try folder.tree() == [
        "work/": [], "to/example.org-8080/2024/film.mkv": [1], "to/example.org-8080/2024/film (1).mkv": [2],
      ])
  }

  @Test("a symbolic link below the first field leads nowhere")
  func links() async throws {
    let folder = try TemporaryFolder()
    try folder.makeFolder("to")
    try folder.makeFolder("outside")
    try FileManager.default.createSymbolicLink(
      atPath: folder.path("to/example.org-8080"), withDestinationPath: folder.path("outside"))
    let artifact = Artifact(location: .path(try folder.write([1], to: "work/x")), name: "x")
    let step = try MoveInto(template: folder.path + "/to/{host}/{name}")
    await #expect {
      try await step.process(artifact, in: try context())
    } throws: { ($0 as? DownloadError)?.code == .unsafePath }
    #expect(try folder.read("work/x") == [1])
  }

  @Test("after a crash at midnight the file is found in the folder of yesterday")
  func crashAtMidnight() async throws {
    let folder = try TemporaryFolder()
    let artifact = Artifact(location: .path(try folder.write([1], to: "work/x")), name: "x")
    let request = try DownloadRequest("https://example.org/x", id: "id")
    let notes = Notes()
    func step(_ date: Date) throws -> MoveInto {
      try MoveInto(template: folder.path + "/to/{day}/{name}", system: .system) { date }
    }
    let context = ProcessingContext(request: request, workspace: nil) { notes.keep($0) }
    let first = try await step(Self.now).process(artifact, in: context)
    let again = ProcessingContext(request: request, workspace: nil, priorNote: notes.last)
    let second = try await step(Self.now.addingTimeInterval(86_400)).process(artifact, in: again)
    #expect(first.path == second.path && first.path == folder.path("to/09/x"))
    #expect(try folder.tree() == ["work/": [], "to/09/x": [1]])
  }

  @Test func summaryShowsTheTemplate() throws {
    let step = try MoveInto(template: "~/Films/{host}/{name}", onConflict: .replace)
    #expect(step.summary == "~/Films/{host}/{name}, replace")
    #expect(step.template == "~/Films/{host}/{name}" && step.directory == nil && MoveInto("/x").template == nil)
  }

  @Test func conforms() async throws {
    let folder = try TemporaryFolder()
    try await PostProcessorConformance(
      try MoveInto(template: folder.path + "/moved/{year}/{stem}.{extension}"),
      .init(Array("bytes".utf8), named: "a.txt"), and: .init(Array("other bytes".utf8), named: "b.txt"),
      excluding: [
        .init("input-is-kept", because: "it moves its input"),
        .init("output-is-in-the-workspace", because: "the folder it moves into is the point"),
      ]
    ).run()
    #expect(try folder.contents().contains("moved/1994/a.txt"))
  }
}
