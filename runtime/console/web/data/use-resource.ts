/**
 * Loads a page's data, and reloads it when its key changes. The previous data stays visible until the new data arrives.
 */
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
  readonly data?: { readonly of: string; readonly value: T } | undefined
  readonly error?: ApiError
  readonly loading: boolean
}

/** Loads data. `key` must identify everything that `load` depends on. */
export function useResource<T>(key: string, load: (signal: AbortSignal) => Promise<T>): FetchedResource<T> {
  return useLoaded(key, load, false)
}

/** Loads a list. Keeps the data of the previous key until the data of the new key arrives or fails to load. */
export function useList<T>(key: string, load: (signal: AbortSignal) => Promise<T>): FetchedResource<T> {
  return useLoaded(key, load, true)
}

function useLoaded<T>(
  key: string,
  load: (signal: AbortSignal) => Promise<T>,
  keeps: boolean,
): FetchedResource<T> {
  const [loaded, setLoaded] = useState<Loaded<T>>({ key, loading: true })
  const [turn, setTurn] = useState(0)
  const latest = useRef(load)
  latest.current = load
  useEffect(() => {
    const ended = new AbortController()
    setLoaded((last) => (last.key === key ? { ...last, loading: true } : of(last, key, keeps)))
    latest.current(ended.signal).then(
      (data) => {
        if (!ended.signal.aborted) setLoaded({ key, data: { of: key, value: data }, loading: false })
      },
      (error: unknown) => {
        if (ended.signal.aborted) return
        const shown = error instanceof ApiError ? error : new ApiError(0, 'page', String(error))
        setLoaded(({ data }) => ({
          key,
          error: shown,
          loading: false,
          ...(data?.of === key ? { data } : {}),
        }))
      },
    )
    return () => ended.abort()
  }, [key, turn])
  const reload = useCallback(() => setTurn((turn) => turn + 1), [])
  const { data, error, loading } = loaded.key === key ? loaded : of(loaded, key, keeps)
  return { data: data?.value, error, loading, reload }
}

/** Returns the data to show for a key whose data is not loaded yet. */
function of<T>({ data }: Loaded<T>, key: string, keeps: boolean): Loaded<T> {
  return { key, loading: true, ...(keeps ? { data } : {}) }
}
