/** Describes one MCP client as data: its files, the format of its entries, and how it applies a change. */
import type { Format } from '../document/document.ts'

export type Platform = 'darwin' | 'linux' | 'win32'

/**
 * user: applies everywhere. profile: one of the client's profiles. project: a folder. local: one project, stored in the
 * user's file.
 */
export type FileScope = 'user' | 'profile' | 'project' | 'local'

export interface FileRow {
  readonly scope: FileScope
  /**
   * Absolute path, with `/` on every platform. In braces: `home`, `config` (XDG_CONFIG_HOME), `appSupport`, `appData`,
   * `localAppData`, `vscodeUser`, `vscodeInsidersUser`, `cwd`, or `$NAME:FOLDER`: an environment variable, otherwise
   * that folder in the home folder. `*` matches one name.
   */
  readonly path: string
  readonly on?: readonly Platform[]
  /** Keys of the server map if they differ from the client's default. `{cwd}` is the project's folder. */
  readonly key?: readonly string[]
  /** Used only when the file exists: a legacy file, or a file that takes precedence over another file. */
  readonly ifPresent?: true
}

export type EntryTransport = 'streamable-http' | 'sse'

/**
 * `auto` behaves like clients that try both transports: it uses the deprecated HTTP+SSE transport only for a path that
 * ends in `/sse`.
 */
export type WrittenTransport = EntryTransport | 'auto'

/** Names of the fields in an entry. */
export interface EntryForm {
  readonly command: 'command' | 'cmd'
  readonly env: 'env' | 'envs' | 'environment'
  /** Field that lists the variables that the server inherits from the client. */
  readonly envNames?: string
  /** True when a remote server's headers may refer to variables in its entry, as `$V` or `${V}`. */
  readonly headersUseEnv?: true
  /** Fields that can contain the URL, with the transport that each field implies when the entry has no type. */
  readonly urls: Readonly<Record<string, WrittenTransport>>
  readonly type: 'type' | 'transport'
  readonly headers: 'headers' | 'http_headers'
  /** Field that maps header names to variables. */
  readonly headerVariables?: string
  /** Field with the name of the variable that contains a bearer token. */
  readonly bearerVariable?: string
  /** Fields that list the enabled and disabled tools. */
  readonly allow?: string
  readonly deny?: string
  /** True when an empty `allow` list offers every tool. By default, an empty list offers no tools. */
  readonly emptyAllowsAll?: true
  /**
   * Fields that affect only the client (time limits, approvals, descriptions). Such fields are reported, but not as
   * lost settings.
   */
  readonly own: readonly string[]
}

/** Syntax of variable references. `dollar` accepts `$V` and `${V}`. */
export type VariableSyntax = 'none' | 'braces' | 'dollar' | 'prefixed' | 'bare-braces'

export interface ClientRow {
  readonly title: string
  readonly format: Format
  /** Keys from the top of the document to the server map. */
  readonly key: readonly string[]
  readonly files: readonly FileRow[]
  readonly form: EntryForm
  readonly variables: VariableSyntax
  /**
   * Returns the native entry for a remote server. Undefined when the client has no native entries for remote servers.
   * `token` is the client's reference to a variable, for the Authorization header.
   */
  readonly remote?: (url: string, token: BearerReference | undefined) => Readonly<Record<string, unknown>>
  /** Returns the entry that starts a program. Undefined when the client's files are only read. */
  readonly program?: (command: string, args: readonly string[]) => Readonly<Record<string, unknown>>
  readonly reservedNames?: readonly string[]
  /** Instructions for the user to apply the change. */
  readonly pickUp: string
  /**
   * Processes that overwrite the file with the copy that they keep in memory. The file is not edited while one of these
   * processes is running.
   */
  readonly rewrittenBy?: readonly string[]
  /** Returns the client's command that adds the entry. */
  readonly ownCommand?: (name: string, url: string, scope: FileScope) => readonly string[]
  /** Returns a link that adds the entry. The link never contains a secret. */
  readonly link?: (name: string, url: string) => string
}

export interface BearerReference {
  readonly variable: string
  /** `Bearer ${V}` in the client's syntax. Undefined when the client has no syntax for variables in headers. */
  readonly header: string | undefined
}
