/**
 * Serves a certificate from two files and reloads the files when they change, without a restart and without closing
 * connections. If the new pair is unusable, the observer receives the reason, and the previous pair stays in use.
 */
import { X509Certificate } from 'node:crypto'
import { type FSWatcher, readFileSync, watch } from 'node:fs'
import { dirname } from 'node:path'
import { createSecureContext, type SecureContextOptions } from 'node:tls'
import { invalidConfig } from '../errors.ts'
import { formatViolations, type Violation } from '../validation/violations.ts'
import { pairViolations } from './pair.ts'

export interface CertificateFiles {
  readonly certFile: string
  readonly keyFile: string
  /** Certificate authority for client certificates. */
  readonly clientCaFile?: string | undefined
}

export interface CertificateObserver {
  /** Called after a new pair has been loaded. */
  readonly onReloaded?: (certificate: ServedCertificate) => void
  /** Called once each time the files change and their new content is unusable. */
  readonly onUnusable?: (reason: string) => void
  /** Called once a minute, after the files have been checked. */
  readonly onPoll?: (certificate: ServedCertificate) => void
}

/** The method that `https.Server` and `tls.Server` share. */
interface SecureServer {
  setSecureContext(options: SecureContextOptions): void
}

interface Pair {
  readonly options: SecureContextOptions
  /** Expiry time, in milliseconds since the epoch. */
  readonly endsAt: number
}

/** Polling interval, because some mounts send no change notifications. */
const pollMs = 60_000
/** Delay before reading the files. Two files that are written one after the other are then read together. */
const settleMs = 200
/** Represents the content of the files while one of them is missing. */
const missing = 'missing'

export class ServedCertificate {
  readonly #files: CertificateFiles
  readonly #observer: CertificateObserver
  readonly #servers = new Set<SecureServer>()
  readonly #watchers: readonly FSWatcher[]
  readonly #poll: NodeJS.Timeout
  #settle: NodeJS.Timeout | undefined
  #content: string | undefined
  #pair: Pair

  /** Reads, checks and watches the files. Throws INVALID_CONFIG listing all problems. */
  constructor(files: CertificateFiles, observer: CertificateObserver = {}) {
    this.#files = files
    this.#observer = observer
    this.#content = contentOf(files)
    this.#pair = readPair(files)
    this.#poll = setInterval(() => this.checkFiles(), pollMs)
    this.#poll.unref()
    // Kubernetes updates a mounted Secret by replacing a symbolic link in the same folder.
    const folders = new Set(pathsOf(files).map((file) => dirname(file)))
    this.#watchers = [...folders].map((folder) => this.#watch(folder))
  }

  /** TLS options for new connections. */
  get options(): SecureContextOptions {
    return this.#pair.options
  }

  /** True if clients may authenticate with a certificate. */
  get hasClientAuthority(): boolean {
    return this.#files.clientCaFile !== undefined
  }

  /** Expiry time of the certificate in use, in milliseconds since the epoch. */
  get endsAt(): number {
    return this.#pair.endsAt
  }

  /** Applies each new pair to the server, which must have been created using `options`. */
  follow(server: SecureServer): void {
    this.#servers.add(server)
  }

  unfollow(server: SecureServer): void {
    this.#servers.delete(server)
  }

  /** Reads the files if they have changed. Returns true when a new pair is in use. */
  reload(): boolean {
    const content = contentOf(this.#files)
    if (content === undefined || content === this.#content) return false
    this.#content = content
    try {
      const pair = readPair(this.#files)
      if (pair.endsAt <= Date.now() && this.#pair.endsAt > Date.now())
        throw invalidConfig(`${this.#files.certFile}: the certificate has already expired`)
      for (const server of this.#servers) server.setSecureContext(pair.options)
      this.#pair = pair
    } catch (error) {
      this.#observer.onUnusable?.(error instanceof Error ? error.message : 'unknown error')
      return false
    }
    this.#observer.onReloaded?.(this)
    return true
  }

  /**
   * Runs once a minute. A file that is still missing at that time was deleted; an update would have finished earlier.
   * The observer may also check the expiry.
   */
  checkFiles(): void {
    if (contentOf(this.#files) !== undefined) this.reload()
    else if (this.#content !== missing) {
      this.#content = missing
      this.#observer.onUnusable?.('the files are missing')
    }
    this.#observer.onPoll?.(this)
  }

  close(): void {
    clearInterval(this.#poll)
    clearTimeout(this.#settle)
    for (const watcher of this.#watchers) watcher.close()
    this.#servers.clear()
  }

  #watch(folder: string): FSWatcher {
    const watcher = watch(folder, { persistent: false }, () => {
      clearTimeout(this.#settle)
      this.#settle = setTimeout(() => this.reload(), settleMs)
      this.#settle.unref()
    })
    // The folder no longer exists. Polling continues.
    watcher.on('error', () => watcher.close())
    return watcher
  }
}

/** Throws INVALID_CONFIG listing all problems in the files. */
export function checkCertificate(files: CertificateFiles): void {
  readPair(files)
}

/**
 * Returns the expiry time of the certificate in the file, in milliseconds since the epoch, or undefined when the file
 * cannot be read.
 */
export function certificateEndsAt({ certFile }: CertificateFiles): number | undefined {
  try {
    return endOf(readFileSync(certFile))
  } catch {
    return undefined
  }
}

function endOf(pem: string | Buffer): number {
  return new X509Certificate(pem).validToDate.getTime()
}

function readPair(files: CertificateFiles): Pair {
  const violations: Violation[] = []
  function read(path: string): string {
    try {
      return readFileSync(path, 'utf8')
    } catch {
      violations.push({ path, message: 'the file cannot be read' })
      return ''
    }
  }
  const { certFile, keyFile, clientCaFile } = files
  const cert = read(certFile)
  const key = read(keyFile)
  const ca = clientCaFile === undefined ? undefined : read(clientCaFile)
  if (violations.length === 0) {
    violations.push(...pairViolations({ cert, key }, { cert: certFile, key: keyFile }))
    if (ca !== undefined && !isAuthority(ca))
      violations.push({ path: clientCaFile ?? '', message: 'contains no CA certificate' })
  }
  if (violations.length > 0) throw invalidConfig(formatViolations(violations))
  const options = { cert, key, minVersion: 'TLSv1.2' as const, ...(ca !== undefined && { ca }) }
  try {
    createSecureContext(options)
  } catch (cause) {
    throw invalidConfig(`${certFile}, ${keyFile}: rejected by TLS${reasonOf(cause)}`, cause)
  }
  return { options, endsAt: endOf(cert) }
}

/** OpenSSL's error text, which does not quote any content. */
function reasonOf(error: unknown): string {
  const { reason } = error as { readonly reason?: unknown }
  return typeof reason === 'string' ? `: ${reason}` : ''
}

/**
 * True if the text begins with the certificate of an authority. OpenSSL treats a file without a certificate as an
 * authority without certificates, and would reject every client silently.
 */
export function isAuthority(pem: string): boolean {
  try {
    return new X509Certificate(pem).ca
  } catch {
    return false
  }
}

function pathsOf({ certFile, keyFile, clientCaFile }: CertificateFiles): string[] {
  return [certFile, keyFile, ...(clientCaFile === undefined ? [] : [clientCaFile])]
}

/** Returns the combined contents of the files, or undefined while a file is missing, as happens during an update. */
function contentOf(files: CertificateFiles): string | undefined {
  try {
    return pathsOf(files)
      .map((file) => readFileSync(file, 'latin1'))
      .join('\0')
  } catch {
    return undefined
  }
}
