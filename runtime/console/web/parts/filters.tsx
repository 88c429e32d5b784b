/** Filter fields for a list. The fields update the route's query, so that a filtered list has its own URL. */
import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { BackendView, Me, ListPage } from '../../api.ts'
import { get } from '../data/client.ts'
import { useResource } from '../data/use-resource.ts'
import { may } from '../shell/permissions.ts'
import { route, setQuery } from '../shell/router.ts'
import { texts } from '../texts.ts'

const typingMs = 300

export function Filters({ children }: { readonly children: ComponentChildren }) {
  return (
    <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
      {children}
    </form>
  )
}

/** A text field. The list updates shortly after the last key press. */
export function TextFilter({ name, label }: { readonly name: string; readonly label: string }) {
  const current = route.value.query.get(name) ?? ''
  const [text, setText] = useState(current)
  useEffect(() => setText(current), [current])
  useEffect(() => {
    if (text === current) return undefined
    const timer = setTimeout(() => setQuery({ [name]: text }), typingMs)
    return () => clearTimeout(timer)
  }, [text])
  return (
    <label>
      <span>{label}</span>
      <input
        type="search"
        value={text}
        maxLength={200}
        autocomplete="off"
        spellcheck={false}
        onInput={({ currentTarget }) => setText(currentTarget.value)}
      />
    </label>
  )
}

export function ChoiceFilter({
  name,
  label,
  options,
}: {
  readonly name: string
  readonly label: string
  /** Value and text of an option. */
  readonly options: readonly (readonly [string, string])[]
}) {
  const current = route.value.query.get(name) ?? ''
  const known = options.some(([value]) => value === current)
  return (
    <label>
      <span>{label}</span>
      <select value={current} onChange={({ currentTarget }) => setQuery({ [name]: currentTarget.value })}>
        <option value="">{texts.filters.any}</option>
        {known || current === '' ? undefined : <option value={current}>{current.slice(0, 60)}</option>}
        {options.map(([value, text]) => (
          <option key={value} value={value}>
            {text.slice(0, 60)}
          </option>
        ))}
      </select>
    </label>
  )
}

/** A select box for users who may list backends, otherwise a text field. */
export function BackendFilter({ me }: { readonly me: Me }) {
  return may(me, 'overview') ? <BackendChoice /> : <TextFilter name="backend" label={texts.backend} />
}

function BackendChoice() {
  const { data } = useResource('backends', (signal) =>
    get<ListPage<BackendView>>('backends?limit=200', signal),
  )
  const options = (data?.items ?? []).map(({ name }) => [name, name] as const)
  return <ChoiceFilter name="backend" label={texts.backend} options={options} />
}

/** Cursors of the pages up to the current page. A new filter starts at the first page. */
export function useTrail(filter: string): [readonly string[], (trail: readonly string[]) => void] {
  const [gone, setGone] = useState<{ readonly filter: string; readonly trail: readonly string[] }>()
  return [gone?.filter === filter ? gone.trail : [], (trail) => setGone({ filter, trail })]
}

/** Paging controls for a list. */
export function Pager({
  next,
  trail,
  setTrail,
}: {
  readonly next: string | undefined
  /** Cursors of the pages after the first, up to the current page. */
  readonly trail: readonly string[]
  readonly setTrail: (trail: readonly string[]) => void
}) {
  if (next === undefined && trail.length === 0) return null
  return (
    <p class="buttons">
      <button type="button" disabled={trail.length === 0} onClick={() => setTrail([])}>
        {texts.filters.first}
      </button>
      <button type="button" disabled={trail.length === 0} onClick={() => setTrail(trail.slice(0, -1))}>
        {texts.filters.previous}
      </button>
      <button
        type="button"
        disabled={next === undefined}
        onClick={() => next !== undefined && setTrail([...trail, next])}
      >
        {texts.filters.next}
      </button>
    </p>
  )
}
