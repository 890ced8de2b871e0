import Downpipe
import Foundation

/// What happens to a file after its download. The request carries it, so that `resume` and later commands treat each
/// file as the command that asked for it.
struct RequestSteps: Sendable, Hashable {
  var gunzips = false
  /// How many leading components are removed from the paths of an archive; `nil` if the file is not unpacked.
  var strippedComponents: Int?
  /// The checksum file that the file is checked against.
  var checksumFile: CompanionPlace?
  /// Whether a file that no digest verifies is refused.
  var requiresDigest = false
  var signature: SignatureCheck?
  /// Whether the file gets the modification time that its server states.
  var keepsTime = false
  /// The absolute path of the folder that the file is moved into.
  var folder: String?
  /// The template of its path below the folder.
  var nameTemplate: String?
  /// The program that runs for the file.
  var command: FinishCommand?
  /// The bucket that the file is uploaded to, as an `s3:` URL.
  var upload: String?

  // The names of the steps, by which the ledger knows them.
  static let checksumFileStep = "ChecksumFile"
  static let requirementStep = "RequireDigest"
  static let signatureStep = "Signature"
  static let extractionStep = "Unarchive"
  static let placementStep = "MoveInto"
  static let commandStep = "RunCommand"
  static let uploadStep = "UploadTo"

  private static let folderKey = "downpipe.move-into"
  private static let stripKey = "downpipe.strip"
  private static let checksumKey = "downpipe.checksum-file"
  private static let nameKey = "downpipe.name"
  static let uploadKey = "downpipe.upload"

  init(gunzips: Bool = false, folder: String? = nil) {
    self.gunzips = gunzips
    self.folder = folder
  }

  /// What a request carries. A step whose settings are missing or unreadable is not among them, and fails.
  init(_ request: DownloadRequest) {
    let (steps, metadata) = (request.steps, request.metadata)
    gunzips = steps.contains("Gunzip")
    if steps.contains(Self.extractionStep) {
      strippedComponents = metadata[Self.stripKey].flatMap(Int.init) ?? 0
    }
    if steps.contains(Self.checksumFileStep) {
      checksumFile = metadata[Self.checksumKey].flatMap { CompanionPlace(stored: $0) }
    }
    requiresDigest = steps.contains(Self.requirementStep)
    if steps.contains(Self.signatureStep) { signature = SignatureCheck(metadata) }
    keepsTime = steps.contains("SetModificationDate")
    folder = metadata[Self.folderKey]
    nameTemplate = metadata[Self.nameKey]
    if steps.contains(Self.commandStep) { command = FinishCommand(metadata) }
    if steps.contains(Self.uploadStep) { upload = metadata[Self.uploadKey] }
  }

  func attach(to request: inout DownloadRequest) {
    var steps: Set = ["VerifyChecksum"]
    if gunzips { steps.insert("Gunzip") }
    if let strippedComponents {
      steps.insert(Self.extractionStep)
      if strippedComponents > 0 { request.metadata[Self.stripKey] = String(strippedComponents) }
    }
    if let checksumFile {
      steps.insert(Self.checksumFileStep)
      request.metadata[Self.checksumKey] = checksumFile.stored
    }
    if requiresDigest { steps.insert(Self.requirementStep) }
    if let signature {
      steps.insert(Self.signatureStep)
      signature.attach(to: &request.metadata)
    }
    if keepsTime { steps.insert("SetModificationDate") }
    request.metadata[Self.folderKey] = folder
    request.metadata[Self.nameKey] = nameTemplate
    if let command {
      steps.insert(Self.commandStep)
      command.attach(to: &request.metadata)
    }
    request.metadata[Self.uploadKey] = upload
    if upload != nil { steps.insert(Self.uploadStep) }
    // A program gets the file in its final place, so the file is moved there first.
    if folder != nil || nameTemplate != nil || command != nil { steps.insert(Self.placementStep) }
    request.steps = .only(steps)
  }
}

extension DownloadRequest {
  private static let givenURLKey = "downpipe.url"

  /// The URL as it was typed, secrets included: the next command with the same URL means the same download.
  var givenURL: String {
    get { metadata[Self.givenURLKey] ?? url.absoluteString }
    set { if newValue != url.absoluteString { metadata[Self.givenURLKey] = newValue } }
  }
}
