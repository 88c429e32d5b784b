/** Log lines of local processes, as `--verbose` shows them. Output that is not a line of our log is shown as it is. */
import {
  isLogged,
  logLevels,
  type LogFormat,
  type LogLevelName,
  textLine,
} from '../../../../schemas/index.ts'

export interface LineOptions {
  readonly format: LogFormat
  readonly colour: boolean
  /** Least level that is shown. */
  readonly level: LogLevelName
}

/** The response of the function: the line to show, undefined for none. */
export function lineWriter({ format, colour, level }: LineOptions): (line: string) => string | undefined {
  return (line) => {
    const own = levelOf(line)
    if (own === undefined) return line
    if (!isLogged(own, level)) return undefined
    return format === 'text' ? textLine(line, { colour }).trimEnd() : line
  }
}

/** The level of a line of our log; undefined for every other line. */
function levelOf(line: string): LogLevelName | undefined {
  const found = /^\{"level":"([a-z]+)","time":"/.exec(line)?.[1]
  return logLevels.find((level) => level === found)
}
