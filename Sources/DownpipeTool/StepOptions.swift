import ArgumentParser
import Downpipe
import DownpipeS3

/// What happens to files after their download.
struct StepOptions: ParsableArguments {
  @Flag(help: "Decompress gzip files.")
  var gunzip = false

  @Flag(
    help: ArgumentHelp(
      "Unpack archives (tar, zip, 7z, cpio, also compressed) into a folder with their name. A file that is no archive "
        + "is an error. The limits of the library apply: a million entries, 64 GiB."))
  var extract = false

  @Option(
    help: ArgumentHelp("With --extract, remove this many leading folders from the paths.", valueName: "n"))
  var stripComponents: Int?

  @Option(
    help: ArgumentHelp(
      "Check files against a checksum file: a URL, the name or the suffix of a file beside each URL, such as SHA256SUMS "
        + "or .sha256, or a local file, whose path has a slash, such as ./SHA256SUMS.", valueName: "file"),
    completion: .file())
  var checksumFile: String?

  @Flag(
    help: ArgumentHelp(
      "Refuse files that no digest verifies: of --checksum, of a checksum file, of a Metalink document, or of the server. "
        + "What was received stays in the ledger's folder, for a command that has a digest."))
  var requireDigest = false

  @Option(
    help: ArgumentHelp(
      "Check files against their signature, in the forms of --checksum-file; “auto”, the default with a key, is the URL "
        + "with .minisig, .sig or .asc.", valueName: "file"),
    completion: .file())
  var signature: String?

  @Option(
    help: ArgumentHelp(
      "The key of signatures by minisign or of plain Ed25519 ones: its text, or a file.", valueName: "key"),
    completion: .file())
  var pubkey: String?

  @Option(
    help: ArgumentHelp(
      "The keys of OpenPGP signatures, which gpgv checks: a keyring, or keys in text form.", valueName: "file"),
    completion: .file())
  var keyring: String?

  @Flag(
    help: ArgumentHelp(
      "Give files the time at which they were last modified on the server. Unpacked files have those of the archive."))
  var keepTime = false

  @Option(
    help: ArgumentHelp(
      "Name files by this template, below their folder, such as “{host}/{year}/{stem}.{extension}”. Fields: {name}, "
        + "{stem}, {extension}, {host}, {year}, {month}, {day} (as last modified on the server) and {id}.",
      valueName: "template"))
  var name: String?

  @Option(help: ArgumentHelp("Move finished files into this folder.", valueName: "dir"), completion: .directory)
  var moveInto: String?

  @Option(
    help: ArgumentHelp(
      "Run this program for each file, in its final place, with its path as argument and without a shell. The download "
        + "fails unless it ends with status 0; the file stays. It runs again if the command was interrupted meanwhile.",
      valueName: "program"),
    completion: .file())
  var onFinish: String?

  @Option(
    parsing: .unconditionalSingleValue,
    help: ArgumentHelp(
      "With --on-finish, give the program this argument; repeat it for several. “{}” is the path of the file, which comes "
        + "last if no argument is “{}”.", valueName: "argument"))
  var onFinishArg: [String] = []

  @Option(
    help: ArgumentHelp(
      "Upload files to this bucket, below this prefix, such as s3://archive/2026: it has them then, and the folder does "
        + "not. An object with other bytes is not replaced. The storage and its keys are those of the environment, as for "
        + "the tools of AWS: AWS_ENDPOINT_URL_S3, AWS_REGION, AWS_PROFILE and so on.", valueName: "url"))
  var uploadTo: String?

  func validate() throws {
    if uploadTo != nil, extract || moveInto != nil || name != nil || onFinish != nil {
      throw ValidationError(
        "--upload-to excludes --extract, --move-into, --name and --on-finish: the file does not stay on this machine")
    }
    if extract, gunzip {
      throw ValidationError("--extract and --gunzip exclude each other: --extract also unpacks compressed archives")
    }
    guard let stripComponents else { return }
    guard extract else { throw ValidationError("--strip-components needs --extract") }
    guard (0...200).contains(stripComponents) else {
      throw ValidationError("--strip-components must be a number from 0 to 200")
    }
  }

  /// Whether anything is to happen to finished files.
  var isAnyGiven: Bool {
    gunzip || extract || requireDigest || keepTime || !onFinishArg.isEmpty
      || [checksumFile, signature, pubkey, keyring, name, moveInto, onFinish, uploadTo].contains { $0 != nil }
  }

  /// The steps, and the checksum file on this machine if there is one. Everything is checked that can be checked before
  /// a download.
  ///
  /// - Parameters:
  ///   - count: Whether there is one file only.
  ///   - prepare: Returns the absolute path of the folder of `--move-into`.
  func plan(
    isSingle: Bool, prepare: (String) throws(UsageError) -> String
  ) throws(UsageError) -> (steps: RequestSteps, checksums: LocalChecksums?) {
    try checkBuild()
    var steps = RequestSteps(gunzips: gunzip, folder: try moveInto.map { text throws(UsageError) in try prepare(text) })
    steps.requiresDigest = requireDigest
    if extract { steps.strippedComponents = stripComponents ?? 0 }
    // The archive has the times of its files.
    steps.keepsTime = keepTime && !extract
    steps.signature = try SignatureCheck(
      signature: signature, publicKey: pubkey, keyring: keyring, isSingle: isSingle)
    if let name { steps.nameTemplate = try PlacementStep.checked(template: name) }
    steps.command = try FinishCommand(program: onFinish, arguments: onFinishArg)
    #if LIBCURL
      if let uploadTo {
        do { _ = try S3(uploadTo) } catch { throw UsageError("--upload-to: \(error.message)") }
        steps.upload = uploadTo
      }
    #endif
    var checksums: LocalChecksums?
    switch try checksumFile.map({ text throws(UsageError) in try CompanionOption(text, "--checksum-file") }) {
    case .local(let path): checksums = try LocalChecksums(path: path)
    case .remote(let place): steps.checksumFile = place
    case nil: break
    }
    return (steps, checksums)
  }

  /// - Throws: ``UsageError`` for an option that this build does not have.
  private func checkBuild() throws(UsageError) {
    #if !LIBCURL
      if uploadTo != nil {
        throw UsageError("--upload-to: this downpipe was built without libcurl: build it with the trait Curl")
      }
    #endif
    #if !Archive
      if extract {
        throw UsageError("--extract: this downpipe was built without libarchive: build it with the trait Archive")
      }
    #endif
    #if !LIBSODIUM
      if pubkey != nil {
        throw UsageError("--pubkey: this downpipe was built without libsodium: build it with the trait Signature")
      }
    #endif
    #if !Command
      if onFinish != nil {
        throw UsageError("--on-finish: this downpipe cannot start programs: build it with the trait Command")
      }
    #endif
  }
}

/// Whether programs of a ledger run.
struct ProgramOptions: ParsableArguments {
  @Flag(
    help: ArgumentHelp(
      """
      Run the programs that the ledger names, as after “get --on-finish”. Use it only with your own ledger, which can name \
      any program.
      """))
  var allowPrograms = false

  var rule: ProgramRule { allowPrograms ? .all : .none }
}
