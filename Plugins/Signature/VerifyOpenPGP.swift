#if os(Linux) || os(macOS)
  public import DownpipeCore
  import DownpipePOSIX
  import Foundation

  /// A step that verifies a detached OpenPGP signature with the program `gpgv` of GnuPG, and does not change the file.
  ///
  /// ```swift
  /// VerifyOpenPGP(keyring: "/usr/share/keyrings/example.gpg")                     // film.mkv.asc
  /// VerifyOpenPGP(keyring: "~/keys/example.asc", signature: .beside(".sig"))
  /// ```
  ///
  /// The step fetches the signature, which is required. Every key in the keyring is trusted, so it has only the keys of
  /// the publisher. A keyring is a binary one, as `gpg --export` writes it, a keybox, or keys in text form. If the signature
  /// file has several signatures, all must be good. See ``VerifySignature`` for what a signature says, and where to put the
  /// step.
  ///
  /// `gpgv` runs without a shell, with a temporary folder as its home, without the user's settings and keys, and is killed
  /// when the download is paused. It is searched for in `PATH`, unless its path is given.
  ///
  /// **Contract.** The step throws `DownloadError` with `.noSignature` if there is no signature; `.badSignature` for one
  /// that is malformed, of another key, expired or revoked, or not of this file; `.invalidPipeline` if the keyring cannot
  /// be read; `.processing` if there is no `gpgv`, or for a folder; the errors of
  /// ``/DownpipeCore/ProcessingContext/fetch(_:maximumBytes:isNamedByUser:)``; and `CancellationError`.
  public struct VerifyOpenPGP: UniversalPostProcessor {
    /// The most bytes of a signature: 256 KiB.
    public static let maximumBytes = 256 << 10

    /// The path of the keyring.
    public let keyring: String
    /// The signature.
    public let signature: CompanionFile
    /// The path of `gpgv`; that in `PATH` when `nil`.
    public let program: String?

    /// Creates a step.
    ///
    /// - Parameters:
    ///   - keyring: The path of the file with the public keys; `~/` is the home directory.
    ///   - signature: The signature; by default the file with the suffix `.asc`.
    ///   - program: The path of `gpgv`; by default it is searched for in `PATH`.
    public init(keyring: String, signature: CompanionFile = .beside(".asc"), program: String? = nil) {
      self.keyring = keyring
      self.signature = signature
      self.program = program
    }

    /// The place of the signature.
    public var summary: String { signature.description }

    /// The step checks a file and does not change it.
    public var keepsContent: Bool { true }

    /// Verifies the signature of the artifact and returns it unchanged.
    public func process(_ artifact: Artifact, in context: ProcessingContext) async throws -> Artifact {
      if let error = artifact.folderError(in: name) { throw error }
      try Task.checkCancellation()
      let program = try findProgram()
      let keys = try readKeyring()
      try await context.verify(with: signature, maximumBytes: Self.maximumBytes) { bytes in
        let folder = FileManager.default.temporaryDirectory.appending(path: "downpipe-gpgv-\(UUID().uuidString)")
        do {
          try FileManager.default.createDirectory(
            at: folder, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        } catch {
          throw DownloadError(error, as: .storage)
        }
        defer { try? FileManager.default.removeItem(at: folder) }
        try await verify(artifact, bytes, keys, with: program, in: folder)
      }
      return artifact
    }

    private func verify(
      _ artifact: Artifact, _ signature: [UInt8], _ keys: [UInt8], with program: String, in folder: URL
    ) async throws {
      // A message with its own text would be verified in place of the file.
      let head = String(decoding: signature.prefix(64).drop { $0 <= 0x20 }, as: UTF8.self)
      guard signature.first.map({ $0 >= 0x80 }) ?? false || head.hasPrefix("-----BEGIN PGP SIGNATURE-----") else {
        throw DownloadError(.badSignature, "the signature file is not a detached OpenPGP signature")
      }
      func file(_ name: String) -> URL { folder.appending(path: name, directoryHint: .notDirectory) }
      func write(_ bytes: [UInt8], to name: String) throws -> String {
        do { try Data(bytes).write(to: file(name)) } catch { throw DownloadError(error, as: .storage) }
        return file(name).path
      }
      let data: String
      switch artifact.location {
      case .path(let path):
        // A FIFO would never end.
        _ = try ArtifactBytes(artifact)
        data = URL(filePath: path).path
      case .memory(let bytes): data = try write(bytes, to: "file")
      case .remote(let url): throw DownloadError.elsewhere(url)
      }
      let child = ChildProgram(
        path: program,
        arguments: [
          "--homedir", folder.path, "--keyring", try write(keys, to: "keys.gpg"), "--status-fd", "1", "--",
          try write(signature, to: "signature"), data,
        ],
        environment: ["LC_ALL=C", "PATH=/usr/bin:/bin", "GNUPGHOME=\(folder.path)", "HOME=\(folder.path)"],
        output: file("status").path, errors: file("errors").path)
      let status = try await child.run()
      let printed = try Self.read(file("status"))
      guard status == 0, GPGVStatus(printed).isGood else {
        let errors = (try? Self.read(file("errors"))) ?? ""
        throw DownloadError(
          .badSignature,
          "the signature is not a good one of “\(artifact.name)” by a key of the keyring: \(GPGVStatus(printed).reason(errors))"
        )
      }
    }

    /// The most that is read of what `gpgv` prints.
    private static let longestOutput = 1 << 20

    private static func read(_ file: URL) throws -> String {
      do {
        let handle = try FileHandle(forReadingFrom: file)
        defer { try? handle.close() }
        let data = try handle.read(upToCount: longestOutput + 1) ?? Data()
        guard data.count <= longestOutput else {
          throw DownloadError(.badSignature, "gpgv prints more than \(longestOutput) bytes about the signature")
        }
        return String(decoding: data, as: UTF8.self)
      } catch {
        throw DownloadError(error, as: .processing)
      }
    }

    // MARK: The program and the keys

    private func findProgram() throws(DownloadError) -> String {
      let variable = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/local/bin:/usr/bin:/bin"
      // A relative folder would depend on where the program was started.
      let folders = variable.split(separator: ":").filter { $0.hasPrefix("/") }
      let candidates = program.map { [$0] } ?? folders.map { "\($0)/gpgv" }
      guard let found = candidates.first(where: { FileManager.default.isExecutableFile(atPath: $0) }) else {
        throw DownloadError(
          .processing,
          "\(program ?? "gpgv") was not found: install GnuPG (on Debian the package gpgv, with Homebrew gnupg), or give "
            + "VerifyOpenPGP the path of gpgv")
      }
      return found
    }

    /// The most bytes of a keyring: 16 MiB.
    private static let largestKeyring = 16 << 20

    private func readKeyring() throws(DownloadError) -> [UInt8] {
      let path = keyring.hasPrefix("~/") ? NSHomeDirectory() + keyring.dropFirst() : keyring
      guard let data = FileManager.default.contents(atPath: path), !data.isEmpty, data.count <= Self.largestKeyring
      else {
        throw DownloadError(
          .invalidPipeline,
          "the keyring \(path) cannot be read, is empty, or has more than \(Self.largestKeyring) bytes")
      }
      let bytes = Array(data)
      return try OpenPGPArmor.keys(in: bytes) ?? bytes
    }
  }

  /// What `gpgv` reports with `--status-fd` (`doc/DETAILS` of GnuPG).
  struct GPGVStatus {
    private static let prefix = "[GNUPG:] "
    /// A signature that is not good, for any reason: an expired or revoked key is valid for `VALIDSIG`.
    private static let refusals: Set<Substring> = [
      "BADSIG", "ERRSIG", "EXPSIG", "EXPKEYSIG", "REVKEYSIG", "NODATA", "FAILURE",
    ]
    private let lines: [[Substring]]

    init(_ text: String) {
      lines = text.split(separator: "\n").filter { $0.hasPrefix(Self.prefix) }
        .map { $0.dropFirst(Self.prefix.count).split(separator: " ") }
    }

    /// Whether there is a signature, and every one is a good one of a document.
    var isGood: Bool {
      let words = lines.compactMap(\.first)
      let valid = lines.filter { $0.first == "VALIDSIG" }
      // The ninth value is the class: 00 is a binary document, 01 one of text.
      return !valid.isEmpty && valid.allSatisfy { $0.count > 9 && ["00", "01"].contains($0[9]) }
        && words.count { $0 == "GOODSIG" } == valid.count && words.allSatisfy { !Self.refusals.contains($0) }
    }

    /// Why it is not good, in a few words.
    func reason(_ errors: String) -> String {
      switch lines.compactMap(\.first).first(where: Self.refusals.contains) {
      case "BADSIG": "the file or the signature was changed"
      case "ERRSIG" where lines.contains { $0.first == "NO_PUBKEY" }:
        "the keyring does not have the key that has signed"
      case "EXPSIG": "the signature has expired"
      case "EXPKEYSIG": "the key has expired"
      case "REVKEYSIG": "the key was revoked"
      case "NODATA": "the signature file has no signature"
      default:
        "gpgv says “\(errors.prefix(300).split(whereSeparator: \.isNewline).joined(separator: "; "))”"
      }
    }
  }
#endif
