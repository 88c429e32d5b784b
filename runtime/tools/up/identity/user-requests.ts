/** The commands `gatehouse up user add`, `list` and `remove`, which send requests to the running `gatehouse up`. */
import { invalidConfig } from '../../../../schemas/index.ts'
import { thisHost } from '../../../toolkit/client-files/host.ts'
import { print, printError, printJson } from '../../../toolkit/terminal/output.ts'
import { askInstance, pathAbout, type UsersAnswer } from '../instance/control.ts'
import { runningInstance } from '../instance/instance.ts'
import { UpState } from '../state.ts'

export async function addUser(name: string): Promise<void> {
  const { link = '' } = await askUsers('POST', name)
  printError(`Send this link to ${name} only. The link works once, within 24 hours.`)
  print(link)
}

export async function listUsers({ json }: { readonly json: boolean }): Promise<void> {
  const { users = [] } = await askUsers('GET')
  if (json) printJson({ schema: 'gatehouse.dev/up-users/v1', users })
  else
    for (const { name, signsInWith } of users) print(`${name}  ${signsInWith ?? 'has not used the link yet'}`)
}

export async function removeUser(name: string): Promise<void> {
  await askUsers('DELETE', name)
  print(`Removed ${name}. All logins have ended.`)
}

async function askUsers(method: 'GET' | 'POST' | 'DELETE', name = ''): Promise<UsersAnswer> {
  const instance = runningInstance(new UpState(thisHost()).folder)
  if (!instance) throw invalidConfig('gatehouse up is not running; start it with gatehouse up --login')
  const answer = (await askInstance(instance, method, pathAbout('users', name))) as UsersAnswer
  if (answer.problem !== undefined) throw invalidConfig(answer.problem)
  return answer
}
