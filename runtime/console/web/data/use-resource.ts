/** Loads what a page shows, and again when its key changes. What was shown stays until the next is there. */
import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { ApiError } from './client.ts'

export interface FetchedResource<T> {
  readonly data: T | undefined
  readonly error: ApiError | undefined
  readonly loading: boolean
  readonly reload: () => void
}

interface Loaded<T> {
  readonly key: string
  readonly data?: T
  readonly error?: ApiError
  readonly loading: boolean
}

/** `key` stands for everything that `load` depends on. */
export function useResource<T>(key: string, load: (signal: AbortSignal) => Promise<T>): FetchedResource<T> {
  const [loaded, setLoaded] = useState<Loaded<T>>({ key, loading: true })
  const [turn, setTurn] = useState(0)
  const latest = useRef(load)
  latest.current = load
  useEffect(() => {
    const ended = new AbortController()
    setLoaded((last) => ({ ...(last.key === key ? last : {}), key, loading: true }))
    latest.current(ended.signal).then(
      (data) => {
        if (!ended.signal.aborted) setLoaded({ key, data, loading: false })
      },
      (error: unknown) => {
        if (ended.signal.aborted) return
        const shown = error instanceof ApiError ? error : new ApiError(0, 'page', String(error))
        setLoaded(({ data }) => ({
          key,
          error: shown,
          loading: false,
          ...(data === undefined ? {} : { data }),
        }))
      },
    )
    return () => ended.abort()
  }, [key, turn])
  const reload = useCallback(() => setTurn((turn) => turn + 1), [])
  const current: Loaded<T> = loaded.key === key ? loaded : { key, loading: true }
  return { data: current.data, error: current.error, loading: current.loading, reload }
}
