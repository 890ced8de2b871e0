// What Downpipe uses of Foundation: every name is on this list, so that a new one is noticed and looked up. Nothing else
// of Foundation on Linux is visible, which would bring Glibc.

@_exported import AppleDarwin
@_exported import Dispatch
@_exported import struct Foundation.Data
@_exported import struct Foundation.Date
@_exported import class Foundation.FileHandle
@_exported import class Foundation.FileManager
@_exported import protocol Foundation.FormatStyle
@_exported import class Foundation.JSONDecoder
@_exported import class Foundation.JSONEncoder
@_exported import protocol Foundation.LocalizedError
@_exported import class Foundation.NSError
@_exported import func Foundation.NSHomeDirectory
@_exported import class Foundation.NSObject
@_exported import protocol Foundation.NSObjectProtocol
@_exported import let Foundation.NSPOSIXErrorDomain
@_exported import class Foundation.NSString
@_exported import let Foundation.NSURLErrorDomain
@_exported import let Foundation.NSUnderlyingErrorKey
@_exported import class Foundation.OperationQueue
@_exported import class Foundation.ProcessInfo
@_exported import class Foundation.Thread
@_exported import typealias Foundation.TimeInterval
@_exported import struct Foundation.TimeZone
@_exported import struct Foundation.URL
@_exported import struct Foundation.URLComponents
@_exported import struct Foundation.URLError
@_exported import struct Foundation.UUID
@_exported import class FoundationNetworking.HTTPCookie
@_exported import class FoundationNetworking.HTTPCookieStorage
@_exported import class FoundationNetworking.HTTPURLResponse
@_exported import class FoundationNetworking.URLCache
@_exported import struct FoundationNetworking.URLRequest
@_exported import class FoundationNetworking.URLResponse
