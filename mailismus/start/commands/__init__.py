"""Commands about the configuration and the manual; parsers and help texts.

Modules, each with what it is:

    wording        help texts. Pure
    parser         parsers of the command line, with our exit codes
    config_advice  prints advice about a configuration
    config_change  `config set|unset`
    config_diff    `config diff`
    config         `config check|show|sample|schema`, and the parsers of all
    completion_scripts  the scripts of completion, for each shell. Pure
    completion     `completion bash|zsh|fish`
    manual         `manual commands|settings`
"""
