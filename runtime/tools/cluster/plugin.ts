#!/usr/bin/env node
/**
 * The plugin `kubectl gatehouse`: the commands of `gatehouse cluster` under the name that kubectl calls.
 *
 * kubectl runs the program `kubectl-gatehouse` of PATH. Source: Kubernetes documentation, "Extend kubectl with plugins".
 */
import { addClusterCommands, clusterDescription } from './command.ts'
import { rootCommand, runProgram } from '../../toolkit/terminal/program.ts'

const program = rootCommand('kubectl gatehouse')
program.description(`${clusterDescription}\nThe same as gatehouse cluster.`)
addClusterCommands(program)

await runProgram(program)
