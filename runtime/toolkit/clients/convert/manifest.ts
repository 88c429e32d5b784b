/** The shapes that conversion writes: just what it sets. */
export interface ConvertedManifest {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: {
    readonly name: string
    readonly annotations?: Readonly<Record<string, string>>
  }
  readonly spec?: Readonly<Record<string, unknown>>
  readonly type?: string
  readonly stringData?: Readonly<Record<string, string>>
}

/** A reference to a key of a Secret. */
export interface SecretKey {
  readonly name: string
  readonly key: string
}
