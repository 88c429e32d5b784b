/** Types of the part of autocannon that the benchmarks use. The package has no types. */
declare module 'autocannon' {
  interface Options {
    readonly url: string
    readonly connections: number
    /** Seconds. */
    readonly duration: number
    /** Milliseconds of a sample. */
    readonly sampleInt?: number
    readonly method?: 'GET' | 'POST'
    readonly headers?: Readonly<Record<string, string>>
    readonly body?: string
  }
  interface Result {
    readonly requests: { readonly total: number }
    readonly latency: { readonly p50: number; readonly p99: number }
    /** Seconds. */
    readonly duration: number
    readonly non2xx: number
    readonly errors: number
  }
  function autocannon(options: Options): Promise<Result>
  export = autocannon
}
