/** Formats numbers, durations and times. */
const lang = document.documentElement.lang
const integer = new Intl.NumberFormat(lang)
const clock = new Intl.DateTimeFormat(lang, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' })
const exactClock = new Intl.DateTimeFormat(lang, { timeStyle: 'medium', hourCycle: 'h23' })
const dayAndClock = new Intl.DateTimeFormat(lang, {
  month: 'short',
  day: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
  hourCycle: 'h23',
})
const full = new Intl.DateTimeFormat(lang, { dateStyle: 'long', timeStyle: 'long', hourCycle: 'h23' })

export function count(value: number): string {
  return integer.format(value)
}

/** Formats a duration as 412 ms, 1.9 s or 3 min. */
export function duration(ms: number | undefined): string {
  if (ms === undefined) return '–'
  if (ms < 1000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`
  if (ms < 3_600_000) return `${Math.round(ms / 60_000)} min`
  if (ms < 172_800_000) return `${Math.round(ms / 3_600_000)} h`
  return `${Math.round(ms / 86_400_000)} days`
}

/** Formats the time of day, with the date unless it is today. */
export function shortTime(at: string, to: 'minutes' | 'seconds'): string {
  const date = new Date(at)
  if (Number.isNaN(date.getTime())) return at
  if (date.toDateString() !== new Date().toDateString()) return dayAndClock.format(date)
  return (to === 'seconds' ? exactClock : clock).format(date)
}

export function fullTime(at: string): string {
  const date = new Date(at)
  return Number.isNaN(date.getTime()) ? at : full.format(date)
}

/** Formats the time that has elapsed since a timestamp, rounded. */
export function ago(at: string): string {
  // Ignores fractions of a second.
  return duration(Math.max(1000, Date.now() - new Date(at).getTime())).replace(/\.\d/, '')
}
