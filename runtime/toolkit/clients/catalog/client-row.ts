/**
 * What is known about one MCP client, as data: where its files are, how its entries look, and how it takes them up.
 */
import type { Format } from '../document/document.ts'

export type Platform = 'darwin' | 'linux' | 'win32'

/** user: for everything the user opens. profile: one of the client's profiles. project: a folder. local: one project, in the user's file. */
export type FileScope = 'user' | 'profile' | 'project' | 'local'

export interface FileRow {
  readonly scope: FileScope
  /**
   * Absolute, with `/` on every platform. In braces: `home`, `config` (XDG_CONFIG_HOME), `appSupport`, `appData`,
   * `localAppData`, `vscodeUser`, `vscodeInsidersUser`, `cwd`, or
   * `$NAME:FOLDER`: an environment variable, else that folder at home. `*` stands for one name.
   */
  readonly path: string
  readonly on?: readonly Platform[]
  /** Names of the map of servers, where it is not the client's. `{cwd}` is the project's folder. */
  readonly key?: readonly string[]
  /** Read and edited only where it exists: the client's former file, or one that stands in front of another. */
  readonly ifPresent?: true
}

export type EntryTransport = 'streamable-http' | 'sse'

/** `auto`: what a client does that tries both: the HTTP+SSE (deprecated) transport only for a path that ends in `/sse`. */
export type WrittenTransport = EntryTransport | 'auto'

/** How the members of one entry are called. */
export interface EntryForm {
  readonly command: 'command' | 'cmd'
  readonly env: 'env' | 'envs' | 'environment'
  /** A list of variables of the client's own environment that the server gets. */
  readonly envNames?: string
  /** True when headers of a remote server may refer to variables of its entry, as `$V` or `${V}`. */
  readonly headersUseEnv?: true
  /** Members that may hold the URL, and what it means without a type. */
  readonly urls: Readonly<Record<string, WrittenTransport>>
  readonly type: 'type' | 'transport'
  readonly headers: 'headers' | 'http_headers'
  /** Header names to variables. */
  readonly headerVariables?: string
  /** The variable that holds a bearer token. */
  readonly bearerVariable?: string
  /** Lists of tools that are offered, and of those that are not. */
  readonly allow?: string
  readonly deny?: string
  /** True when an empty `allow` list offers every tool. By default it offers none. */
  readonly emptyAllowsAll?: true
  /** What only concerns the client itself (time limits, approvals, descriptions): told, and no loss. */
  readonly own: readonly string[]
}

/** How an entry refers to a variable. `dollar`: `$V` as well as `${V}`. */
export type VariableSyntax = 'none' | 'braces' | 'dollar' | 'prefixed' | 'bare-braces'

export interface ClientRow {
  readonly title: string
  readonly format: Format
  /** Names from the top of the document to the map of servers. */
  readonly key: readonly string[]
  readonly files: readonly FileRow[]
  readonly form: EntryForm
  readonly variables: VariableSyntax
  /**
   * The native entry for a remote server; undefined when the client has none. `token` is the client's own reference to a
   * variable, as the value of an Authorization header.
   */
  readonly remote?: (url: string, token: BearerReference | undefined) => Readonly<Record<string, unknown>>
  /** The entry that starts a program; undefined when the client is only read. */
  readonly program?: (command: string, args: readonly string[]) => Readonly<Record<string, unknown>>
  readonly reservedNames?: readonly string[]
  /** What the user does so that the change is seen. */
  readonly pickUp: string
  /** Processes that write their file from memory: it is not edited while one runs. */
  readonly rewrittenBy?: readonly string[]
  /** The client's own command that adds the entry. */
  readonly ownCommand?: (name: string, url: string, scope: FileScope) => readonly string[]
  /** A link that adds the entry. It never carries a secret. */
  readonly link?: (name: string, url: string) => string
}

export interface BearerReference {
  readonly variable: string
  /** `Bearer ${V}` in the client's own syntax; undefined when it has none. */
  readonly header: string | undefined
}
