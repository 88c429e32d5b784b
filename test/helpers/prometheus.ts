/** Parses metrics in the text format of Prometheus. */
export interface Family {
  readonly type: string
  /** Text of each series: name, labels, value. */
  readonly series: readonly string[]
}

/** Families by name. */
export function familiesOf(text: string): ReadonlyMap<string, Family> {
  const families = new Map<string, { type: string; series: string[] }>()
  let last: { type: string; series: string[] } | undefined
  for (const line of text.split('\n')) {
    const [, name = '', type = ''] = /^# TYPE (\S+) (\S+)$/.exec(line) ?? []
    if (name !== '') {
      last = { type, series: [] }
      families.set(name, last)
    } else if (line !== '' && !line.startsWith('#')) last?.series.push(line)
  }
  return families
}

/** Returns the label names of all series, without those of the format itself. */
export function labelsOf({ series }: Family): ReadonlySet<string> {
  const names = series.flatMap((line) => [...line.matchAll(/[{,]([a-z_]+)="/g)].map(([, name = '']) => name))
  return new Set(names.filter((name) => name !== 'le'))
}
