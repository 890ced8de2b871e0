public import DownpipeCore
import DownpipePOSIX

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// A step that sets the permissions of the file. The umask of the process does not apply.
///
/// ```swift
/// let downloader = try await Downloader {
///   HTTPSource()
///   FileStore("/srv/tools")
///   try SetPermissions(0o755)      // rwxr-xr-x
/// }
/// ```
/// Only the nine bits that let the owner, the group and others read, write and execute can be set. A file that was
/// downloaded never gets the bits for set-user-ID, set-group-ID and sticky: with them, a server would choose a program
/// that runs with other rights. The owner can always read the file, since later steps and downloads do.
///
/// File systems without permissions, such as FAT, keep theirs, which is no error. A file in memory stays as it is, and so
/// does one that was there before the download (``/DownpipeCore/Artifact/isReused``).
public struct SetPermissions: PostProcessor {
  /// The permissions: the nine lowest bits of a mode.
  public let permissions: Int

  let system: FileSystem

  /// Creates a step that sets the permissions of files.
  ///
  /// - Parameter permissions: The permissions as an octal number, such as `0o644`.
  /// - Throws: `DownloadError` with `.invalidPipeline` for other bits than those for reading, writing and executing, as in
  ///   the decimal number `644`, and for permissions that do not let the owner read.
  public init(_ permissions: Int) throws(DownloadError) { try self.init(permissions, system: .system) }

  init(_ permissions: Int, system: FileSystem) throws(DownloadError) {
    guard permissions & ~0o777 == 0 else {
      throw DownloadError(
        .invalidPipeline,
        "SetPermissions cannot set the permissions \(permissions): write those for reading, writing and executing as an "
          + "octal number, such as 0o644; the bits for set-user-ID, set-group-ID and sticky are never set",
        stage: "SetPermissions")
    }
    guard permissions & 0o400 != 0 else {
      throw DownloadError(
        .invalidPipeline,
        "with the permissions \(Self.octal(permissions)) the owner could not read the file, which later steps need: "
          + "add 0o400", stage: "SetPermissions")
    }
    self.permissions = permissions
    self.system = system
  }

  /// The permissions as an octal number.
  public var summary: String { Self.octal(permissions) }

  /// The step does not change the bytes.
  public var keepsContent: Bool { true }

  private static func octal(_ permissions: Int) -> String {
    let digits = String(permissions, radix: 8)
    return "0o" + String(repeating: "0", count: max(0, 3 - digits.count)) + digits
  }

  /// Sets the permissions.
  ///
  /// - Throws: `DownloadError` with `.storage` if the file is missing or was changed since it was published;
  ///   `.permission`; `CancellationError` when the task is cancelled before.
  public func process(_ input: File, in context: ProcessingContext) async throws -> File {
    try Task.checkCancellation()
    guard let opened = try ArtifactFile.open(input.artifact, system) else { return input }
    _ = try opened.change("set the permissions of", context.durability) { descriptor throws(SystemError) in
      try system.permit(descriptor, mode_t(permissions))
    }
    return input
  }
}
