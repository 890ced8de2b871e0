import Foundation
import HangLimit
import Testing

/// Checks that the files and commands that the documentation names exist.
@Suite(.endsHangs)
struct ArticleTests {
  private static let articles = "Sources/Downpipe/Downpipe.docc"

  @Test("the article of promises: each promise names a test file, and each file exists")
  func promisesNameTests() throws {
    let sections = try Self.text(Self.articles + "/Promises.md").split(separator: "\n### ").dropFirst()
    #expect(sections.count >= 12, "the article has lost its promises")
    for section in sections {
      let files = section.matches(of: /`(Tests\/[\w\/]+\.swift)`/).map { String($0.1) }
      #expect(!files.isEmpty, "no test for: \(section.prefix { $0 != "\n" })")
      for file in files { #expect(Self.exists(file), "\(file) does not exist") }
    }
  }

  @Test("the table of protocols: each has a file and a conformance suite, and no protocol is missing")
  func protocolsHaveSuites() throws {
    let article = try Self.text("Sources/DownpipeCore/DownpipeCore.docc/WritingAStage.md")
    let protocols = article.matches(of: /\n\| ``(\w+)`` \|/).map { String($0.1) }
    for name in protocols {
      #expect(Self.exists("Sources/DownpipeCore/Stages/\(name).swift"), "no protocol \(name)")
      #expect(Self.exists("Sources/DownpipeTesting/Conformance/\(name)Conformance.swift"), "no suite for \(name)")
    }
    let suites = try FileManager.default.contentsOfDirectory(
      atPath: Compiler.package.appending(path: "Sources/DownpipeTesting/Conformance").path(percentEncoded: false))
    let checked = suites.compactMap { $0.firstMatch(of: /^(\w+)Conformance\.swift$/).map { String($0.1) } }
    #expect(Set(protocols) == Set(checked))
  }

  @Test("the engine in six files: each exists")
  func engineFiles() throws {
    let article = try Self.text(Self.articles + "/Contributing.md")
    let files = article.matches(of: /`((?:Model|Engine)\/[\w\/]+\.swift)`/).map { String($0.1) }
    #expect(files.count == 6)
    for file in files { #expect(Self.exists("Sources/DownpipeCore/" + file), "\(file) does not exist") }
  }

  @Test("folders and commands that are named exist", arguments: ["README.md", articles + "/Contributing.md"])
  func namesExist(_ path: String) throws {
    let text = try Self.text(path)
    let names = text.matches(of: /(\.ci\/[a-z]+|(?:Sources|Plugins|Examples)\/[\w\/.]*\w)/).map { String($0.1) }
    #expect(names.count > 3)
    for name in names { #expect(Self.exists(name), "\(path) names \(name), which does not exist") }
  }

  @Test("links of the README lead to files")
  func links() throws {
    let links = try Self.text("README.md").matches(of: /\]\(([^)#:]+)\)/).map { String($0.1) }
    #expect(links.count > 5)
    for link in links { #expect(Self.exists(link), "\(link) does not exist") }
  }

  @Test("every library product has a row in the README and a page of its own")
  func products() throws {
    let manifest = try Self.text("Package.swift")
    let readme = try Self.text("README.md")
    let products = manifest.matches(of: /\.library\(name: "(\w+)"/).map { String($0.1) }
    #expect(products.count > 10)
    for product in products {
      let folder = product.replacing(/^Downpipe/, with: "")
      let pages = ["Sources/\(product)", "Plugins/\(folder)"].map { "\($0)/\(product).docc/\(product).md" }
      #expect(pages.contains(where: Self.exists), "no page for \(product)")
      #expect(readme.contains("`\(product)`"), "the README does not name \(product)")
    }
  }

  private static func text(_ path: String) throws -> String {
    try String(contentsOf: Compiler.package.appending(path: path), encoding: .utf8)
  }

  private static func exists(_ path: String) -> Bool {
    FileManager.default.fileExists(atPath: Compiler.package.appending(path: path).path(percentEncoded: false))
  }
}
