/**
 * Reads and writes WWW-Authenticate challenges.
 *
 * The reader supports the whole grammar: several header lines, several challenges per line, token68, quoted strings,
 * case-insensitive names. The reader skips token68 values, because no supported scheme uses them. After a syntax error,
 * the reader drops the rest of the header and keeps the challenges that it has already read. The reader never throws.
 * The writer quotes every value. Source: RFC 9110 sections 11.2 to 11.6.1 and 5.6; RFC 6750 section 3; RFC 9449 section
 * 7.1; RFC 9728 section 5.1.
 */
/** Algorithm of our DPoP proofs. */
export const proofAlgorithm = 'ES256'

export interface Challenge {
  /** Lower case. */
  readonly scheme: string
  /** Names are in lower case. If a name is repeated, the first value is used. */
  readonly params: ReadonlyMap<string, string>
  /**
   * Set by `tokenChallenge` if the server accepts tokens that are bound to a key. `accepted`: the server also accepts
   * bearer tokens. `required`: it accepts only bound tokens. `unsupported`: it accepts only bound tokens, but does not
   * support our proof algorithm.
   */
  readonly proof?: 'accepted' | 'required' | 'unsupported' | undefined
}

const maxLength = 16_384
const tokenPattern = /[!#$%&'*+\-.^_`|~0-9A-Za-z]+/y
const token68Pattern = /[A-Za-z0-9\-._~+/]+=*/y
const quotedPattern = /"((?:[^"\\]|\\[\s\S])*)"/y
const spacePattern = /[ \t]*/y

/** Returns all challenges in the header values, in order. */
export function parseChallenges(values: string | readonly string[] | null | undefined): readonly Challenge[] {
  if (values === null || values === undefined) return []
  return (typeof values === 'string' ? [values] : values).flatMap((value) =>
    new Reader(value.slice(0, maxLength)).challenges(),
  )
}

/** Returns the first challenge of a scheme, preferring a challenge with the parameter `prefer`. */
export function findChallenge(
  challenges: readonly Challenge[],
  scheme: string,
  prefer?: string,
): Challenge | undefined {
  const matching = challenges.filter((challenge) => challenge.scheme === scheme)
  return matching.find((challenge) => prefer !== undefined && challenge.params.has(prefer)) ?? matching[0]
}

/**
 * Merges a server's Bearer and DPoP challenges. Parameters of the DPoP challenge take precedence. Returns undefined if
 * the server sent neither challenge.
 */
export function tokenChallenge(values: string | readonly string[] | null | undefined): Challenge | undefined {
  const challenges = parseChallenges(values)
  const bearer = findChallenge(challenges, 'bearer', 'resource_metadata')
  const dpop = findChallenge(challenges, 'dpop', 'resource_metadata')
  if (!dpop) return bearer
  const algs = dpop.params.get('algs')?.split(' ')
  const isSupported = algs === undefined || algs.includes(proofAlgorithm)
  if (bearer && !isSupported) return bearer
  return {
    scheme: bearer?.scheme ?? dpop.scheme,
    params: new Map([...(bearer?.params ?? []), ...dpop.params]),
    proof: !isSupported ? 'unsupported' : bearer ? 'accepted' : 'required',
  }
}

/** Formats a challenge as header text. Skips undefined parameters. */
export function formatChallenge(
  scheme: string,
  params: readonly (readonly [name: string, value: string | undefined])[],
): string {
  const written = params.flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${quote(value)}`]))
  return written.length === 0 ? scheme : `${scheme} ${written.join(', ')}`
}

/** Returns a quoted-string. Characters that are illegal in a header become question marks. */
function quote(value: string): string {
  return `"${value.replace(/[^\t\x20-\x7e]/g, '?').replace(/["\\]/g, '\\$&')}"`
}

class Reader {
  readonly #text: string
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  challenges(): Challenge[] {
    const found: Challenge[] = []
    for (;;) {
      this.#skipSeparators()
      const scheme = this.#take(tokenPattern)
      if (scheme === undefined) return found
      const challenge = this.#challenge(scheme.toLowerCase())
      if (challenge === undefined) return found
      found.push(challenge)
    }
  }

  /** Reads the text after a scheme. Returns undefined when the rest is not a valid list of challenges. */
  #challenge(scheme: string): Challenge | undefined {
    const params = new Map<string, string>()
    const before = this.#at
    this.#take(spacePattern)
    if (this.#isAtEnd()) return { scheme, params }
    // Only whitespace may separate a scheme from its parameters.
    if (this.#at === before) return undefined
    if (this.#token68() !== undefined) return { scheme, params }
    // Lenient: some servers omit the comma between two parameters.
    while (this.#param(params)) this.#skipSeparators()
    return { scheme, params }
  }

  /**
   * Reads a token68, which fills the rest of its challenge. A parameter name followed by "=" and a value is not a
   * token68.
   */
  #token68(): string | undefined {
    const start = this.#at
    const value = this.#take(token68Pattern)
    if (value !== undefined && this.#isAtEnd()) return value
    this.#at = start
    return undefined
  }

  /** Reads one `name = value`. At the next challenge or at the end of the text, returns false and does not advance. */
  #param(params: Map<string, string>): boolean {
    const start = this.#at
    const name = this.#take(tokenPattern)?.toLowerCase()
    this.#take(spacePattern)
    if (name === undefined || this.#text[this.#at] !== '=') {
      this.#at = start
      return false
    }
    this.#at += 1
    this.#take(spacePattern)
    const value = this.#quoted() ?? this.#take(tokenPattern)
    if (value === undefined) {
      this.#at = this.#text.length
      return false
    }
    if (!params.has(name)) params.set(name, value)
    this.#take(spacePattern)
    return true
  }

  #quoted(): string | undefined {
    quotedPattern.lastIndex = this.#at
    const match = quotedPattern.exec(this.#text)
    if (!match) return undefined
    this.#at = quotedPattern.lastIndex
    return (match[1] ?? '').replace(/\\([\s\S])/g, '$1')
  }

  /** True at a comma or at the end, after optional whitespace. */
  #isAtEnd(): boolean {
    const start = this.#at
    this.#take(spacePattern)
    const ended = this.#isDone() || this.#isAtComma()
    if (!ended) this.#at = start
    return ended
  }

  #isAtComma(): boolean {
    return this.#text[this.#at] === ','
  }

  #isDone(): boolean {
    return this.#at >= this.#text.length
  }

  #skipSeparators(): void {
    while (/[ \t,]/.test(this.#text[this.#at] ?? '')) this.#at += 1
  }

  #take(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at
    const match = pattern.exec(this.#text)
    if (!match) return undefined
    this.#at = pattern.lastIndex
    return match[0]
  }
}
