import ChildPipe
import DownpipeChecksum
import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@Suite(.endsHangs)
struct ChecksumFileTests {
  static let sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
  static let other = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
  static let md5 = "900150983cd24fb0d6963f7d28e17f72"
  static let sha1 = "a9993e364706816aba3e25717850c26c9cd0d89d"

  func parse(_ text: String, named name: String? = nil) throws -> ChecksumFile {
    try ChecksumFile(parsing: Array(text.utf8), named: name)
  }

  /// The error's message.
  func refusal(_ text: String, named name: String? = nil) -> String? {
    do {
      _ = try parse(text, named: name)
      return nil
    } catch {
      #expect((error as? DownloadError)?.code == .invalidChecksumFile)
      return (error as? DownloadError)?.message
    }
  }

  @Test(arguments: [
    "\(sha256)  abc\n", "\(sha256) *abc\n", "\(sha256) abc\n", "\(sha256)\tabc\n", "\(sha256)  abc",
    "\(sha256)  ./abc\r\n",
    "SHA256 (abc) = \(sha256)\n", "SHA256(abc)= \(sha256)\n", "SHA2-256(abc)= \(sha256)\n",
    "sha256 (abc)=\(sha256)\r\n",
    "\(sha256.uppercased())  abc\n", "# a comment\n\n\(sha256)  abc\n  \n", "\u{FEFF}\(sha256)  abc\n",
    "\(sha256)\n", "\(sha256)", "\(sha256)  -\n", "\(sha256)  build/out/abc\n", "\(sha256) *C/abc\n",
    "SIZE (abc) = 3\nSHA256 (abc) = \(sha256)\nBLAKE2b (abc) = 00ff\n", "\(sha256)  abc\n\(sha256)  ./abc\n",
  ])
  func forms(_ text: String) throws {
    let file = try parse(text)
    #expect(file.digest(for: "abc")?.description == "sha-256=\(Self.sha256)")
  }

  @Test func namesAreThoseOfTheLines() throws {
    let text = """
      \(Self.sha256)  abc
      \(Self.other)  old/other.bin
      \(Self.other) * two blanks (1) = x
      \\\(Self.other)  new\\nline\\\\back\\rreturn
      \(Self.other)  back\\slash
      \\SHA256 (b\\\\s) = \(Self.other)
      SHA256 (a) = b) = \(Self.other)
      \(Self.other)  größe.bin

      """
    let file = try parse(text)
    #expect(file.digest(for: "abc")?.hex == Self.sha256)
    for name in [
      "old/other.bin", " two blanks (1) = x", "new\nline\\back\rreturn", "back\\slash", "b\\s", "a) = b", "größe.bin",
    ] {
      #expect(file.digest(for: name)?.hex == Self.other, "\(name)")
    }
    #expect(file.digests(for: "other.bin").isEmpty, "the last component is enough in a file with one name only")
    #expect(file.digest(for: "ABC") == nil)
    #expect(file.digest(for: "") == nil)
    #expect(file.entries.count == 8)
  }

  @Test func severalAlgorithms() throws {
    let file = try parse("MD5 (abc) = \(Self.md5)\nSHA256 (abc) = \(Self.sha256)\nSHA1 (abc) = \(Self.sha1)\n")
    #expect(file.digests(for: "abc").map(\.algorithm) == [.sha256, .sha1, .md5])
    #expect(try parse("\(Self.md5)  abc\n").digest(for: "abc")?.algorithm == .md5)
    #expect(try parse("\(Self.sha1)  abc\n").digest(for: "abc")?.algorithm == .sha1)
    let long = String(repeating: "ab", count: 64)
    #expect(try parse("\(long)  abc\n").digest(for: "abc")?.algorithm == .sha512)
    #expect(try parse("\(long.prefix(96))  abc\n").digest(for: "abc")?.algorithm == .sha384)
    #expect(try parse("cbf43926  abc\n", named: "a.crc32").digest(for: "abc")?.algorithm == .crc32)
    #expect(try parse("cbf43926\n", named: "a.crc32c").digest(for: "abc")?.algorithm == .crc32c)
  }

  @Test func theNameOfTheFileStatesTheAlgorithm() throws {
    let line = "\(Self.sha256)  abc\n"
    for name in ["SHA256SUMS", ".sha256", "sha256sum.txt", "md5tool.zip.sha256", "SHA-256", "checksums.txt", "sha"] {
      #expect(try parse(line, named: name).digest(for: "abc")?.algorithm == .sha256, "\(name)")
    }
    for name in ["SHA512SUMS", ".md5", "MD5SUMS", "x.sha256.md5", "B2SUM", "abc.sha3-256", "SHA512_256SUMS", "blake2s"]
    {
      #expect(refusal(line, named: name) != nil, "\(name)")
    }
  }

  @Test(arguments: [
    ("", "no digest"), ("# nothing\n\n", "no digest"), ("SIZE (abc) = 3\n", "no digest"),
    ("<!DOCTYPE html>\n<p>log in</p>\n", "line 1 "), ("\(sha256)  abc\nhello\n", "line 2 "),
    ("\(sha256.dropLast())  abc\n", "63 hexadecimal digits"), ("cbf43926  abc\n", "8 hexadecimal digits"),
    ("\(sha256)  abc\n\(other)  abc\n", "two different digests"),
    ("\(sha256)  abc\n\(other)  ./abc\n", "two different"),
    ("\(sha256)\n\(other)\n", "without a name beside others"), ("\(sha256)\n\(other)  abc\n", "without a name beside"),
    ("SHA256 (abc) = \(sha1)\n", "no valid digest"), ("SHA256 () = \(sha256)\n", "no name"),
    ("SHA256 (abc = \(sha256)\n", "line 1"), ("(abc) = \(sha256)\n", "line 1"),
    ("\\\(sha256)  a\\tb\n", "unknown escape"), ("\\\(sha256)  a\\\n", "unknown escape"),
    ("\(sha256)  \(String(repeating: "a", count: 4097))\n", "too long"),
    ("\(sha256)  \(String(repeating: "a", count: 20_000))\n", "too long"),
    ("\(sha256)  abc\n-----BEGIN PGP SIGNED MESSAGE-----\n", "line 2"),
    ("-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\n\(sha256)  abc\n", "ends early"),
    ("-----BEGIN PGP SIGNED MESSAGE-----\n\(sha256)  abc\n\n", "line 2"),
    ("-----BEGIN PGP SIGNED MESSAGE-----\n\n-dash\n", "not escaped"),
  ])
  func refused(_ text: String, _ reason: String) throws {
    #expect(try #require(refusal(text)).contains(reason))
  }

  @Test func signedMessages() throws {
    let signature = "-----BEGIN PGP SIGNATURE-----\n\niQIz\n=abcd\n-----END PGP SIGNATURE-----\n"
    let head = "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA512\n\n"
    let file = try parse("\n\(head)\(Self.sha256)  abc\n- \(Self.other)  b\n- # ---\n\(signature)\n\n")
    #expect(file.digest(for: "abc")?.hex == Self.sha256)
    #expect(file.digest(for: "b")?.hex == Self.other)
    let dressed = (head + "\(Self.sha256)  abc\n" + signature)
    #expect(try parse(dressed.replacing("\n", with: "\r\n")).digest(for: "abc")?.hex == Self.sha256)
    #expect(refusal(dressed + "\(Self.other)  evil\n")?.contains("behind the signed message") == true)
    #expect(refusal("\(Self.other)  evil\n" + dressed) != nil, "text before the signed part")
  }

  @Test func limits() throws {
    let tooLong = [UInt8](repeating: UInt8(ascii: "\n"), count: ChecksumFile.maximumBytes + 1)
    #expect(throws: DownloadError.self) { try ChecksumFile(parsing: tooLong) }
    #expect(refusal(String(repeating: "\n", count: ChecksumFile.maximumLines + 1))?.contains("100000 lines") == true)
  }

  @Test("names that are not UTF-8 are skipped")
  func otherEncodings() throws {
    let bytes = Array("\(Self.other)  caf".utf8) + [0xE9, 0x0A] + Array("\(Self.sha256)  abc\n".utf8)
    let file = try ChecksumFile(parsing: bytes)
    #expect(file.entries.map(\.name) == ["abc"])
  }

  @Test("damaged files end with an error or entries, and never with a crash")
  func damaged() {
    let sample = Array(
      "\\\(Self.sha256) *a\\nb\r\nSHA256 (abc) = \(Self.sha256)\n-----BEGIN PGP SIGNED MESSAGE-----\n".utf8)
    var generator = SeededGenerator(seed: 7)
    for _ in 0..<3000 {
      var bytes = sample
      for _ in 0..<Int.random(in: 1...6, using: &generator) {
        let place = Int.random(in: 0..<bytes.count, using: &generator)
        bytes[place] = UInt8.random(in: 0...255, using: &generator)
      }
      bytes = Array(bytes.prefix(Int.random(in: 0...bytes.count, using: &generator)))
      if let file = try? ChecksumFile(parsing: bytes) { #expect(file.entries.count <= 2) }
    }
  }

  #if os(Linux) || os(macOS)
    static let sha256sum = ["/usr/bin/sha256sum", "/bin/sha256sum"]
      .first(where: FileManager.default.isExecutableFile(atPath:))

    @Test(
      "files of sha256sum(1), in both forms", .enabled(if: sha256sum != nil, "there is no sha256sum"),
      arguments: [[], ["--tag"], ["--binary"]])
    func program(_ options: [String]) async throws {
      let folder = try TemporaryFolder()
      let names = ["abc", "with blank", "back\\slash", "new\nline", "größe", "(x) = y", "*star"]
      for name in names { _ = try folder.write(Array(name.utf8), to: name) }
      let process = Process()
      process.executableURL = URL(filePath: try #require(Self.sha256sum))
      process.arguments = options + ["--"] + names
      process.currentDirectoryURL = URL(filePath: folder.path)
      let pipe = try ChildPipe()
      try process.run(output: pipe)
      let output = pipe.fileHandleForReading.readDataToEndOfFile()
      process.waitUntilExit()
      #expect(process.terminationStatus == 0)
      let file = try ChecksumFile(parsing: Array(output), named: "SHA256SUMS")
      for name in names {
        #expect(try file.digest(for: name) == DigestSamples.digest(.sha256, of: Array(name.utf8)), "\(name)")
      }
    }
  #endif
}
